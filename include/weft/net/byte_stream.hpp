// Reading and writing bytes, as all streams have it: TCP, Unix, pipes.
//
// Every operation waits in blocking style, and only the task waits. The try_ forms never wait. Every other operation is a
// cancellation point, which is looked at first. A cancelled read_some() or write_some() has transferred nothing. After a cancelled write_all() or
// read_exactly() the stream is only good for closing: nobody knows how far it came.
//
// Each operation has two forms: one throws std::system_error, the other takes a std::error_code&. The reasons that are
// Weft's own: errc::timed_out, errc::operation_canceled if another task has closed the stream, and, of read_exactly(),
// io_errc::stream_ended. Cancellation is thrown as weft::cancelled in both forms.
//
// One task may read while another writes. Several readers, or several writers, share the bytes in no useful order,
// but nothing breaks.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <span>
#include <system_error>
#include <utility>

#include <weft/detail/fd_handle.hpp>
#include <weft/io_error.hpp>

namespace weft::inline v1::net {

namespace detail {

using weft::detail::clock;

// The time limit of a stream's operations, as expires_after() sets it.
class sticky_limit {
 public:
  template <class Rep, class Period>
  void expires_after(std::chrono::duration<Rep, Period> time) noexcept {
    constexpr auto longest = std::chrono::duration_cast<std::chrono::duration<double>>(clock::duration::max());
    limit_ = std::chrono::duration<double>(time) >= longest ? clock::duration::max()
                                                            : std::chrono::ceil<clock::duration>(time);
  }
  void expires_never() noexcept { limit_ = clock::duration::max(); }
  [[nodiscard]] io::limit now(std::source_location where) const noexcept {
    if (limit_ == clock::duration::max()) [[likely]]
      return {clock::time_point::max(), where};
    return {weft::detail::time_after(limit_), where};
  }

 private:
  clock::duration limit_ = clock::duration::max();
};

// The handle and the sticky time limit, which all streams have.
class stream_handle {
 public:
  // Time limit of every later operation of this object that does not name its own. The operation that takes longer ends
  // with errc::timed_out, and the stream stays usable.
  template <class Rep, class Period>
  void expires_after(std::chrono::duration<Rep, Period> time) noexcept {
    limit_.expires_after(time);
  }
  void expires_never() noexcept { limit_.expires_never(); }

  [[nodiscard]] bool is_open() const noexcept { return handle_.is_open(); }
  // Another task that waits for this stream, or works on it, gets errc::operation_canceled. Closing twice is harmless.
  void close() noexcept { handle_.close(); }
  [[nodiscard]] int native_handle() const { return handle_.number(); }

  // For the other classes of the library.
  [[nodiscard]] io::fd_record& record() const { return handle_.record(); }
  [[nodiscard]] io::limit usual_limit(std::source_location where) const noexcept { return limit_.now(where); }

 protected:
  stream_handle() noexcept = default;
  explicit stream_handle(io::fd_handle h, sticky_limit l = {}) noexcept : handle_(std::move(h)), limit_(l) {}
  io::fd_handle handle_;
  sticky_limit limit_;
};

// What Self has to have: `io::fd_record& record() const` and `io::limit usual_limit(std::source_location) const`.
template <class Self>
class reading {
 public:
  using source = std::source_location;

  // Reads what there is, at least one byte, and returns how many bytes that were: 0 at the end of the stream.
  std::size_t read_some(mutable_buffer to, source where = source::current()) const {
    return checked([&](std::error_code& why) { return io::read_some(its_record(), to, its_limit(where), why); });
  }
  std::size_t read_some(mutable_buffer to, std::error_code& why, source where = source::current()) const {
    return io::read_some(its_record(), to, its_limit(where), why);
  }
  template <class Rep, class Period>
  std::size_t read_some_for(std::chrono::duration<Rep, Period> time, mutable_buffer to,
                            source where = source::current()) const {
    return read_some_until(weft::detail::time_after(time), to, where);
  }
  template <class Rep, class Period>
  std::size_t read_some_for(std::chrono::duration<Rep, Period> time, mutable_buffer to, std::error_code& why,
                            source where = source::current()) const {
    return read_some_until(weft::detail::time_after(time), to, why, where);
  }
  std::size_t read_some_until(clock::time_point when, mutable_buffer to, source where = source::current()) const {
    return checked([&](std::error_code& why) { return io::read_some(its_record(), to, {when, where}, why); });
  }
  std::size_t read_some_until(clock::time_point when, mutable_buffer to, std::error_code& why,
                              source where = source::current()) const {
    return io::read_some(its_record(), to, {when, where}, why);
  }
  // Reads into several buffers, one after the other.
  std::size_t read_some(std::span<const mutable_buffer> to, source where = source::current()) const {
    return checked([&](std::error_code& why) { return io::read_some(its_record(), to, its_limit(where), why); });
  }
  std::size_t read_some(std::span<const mutable_buffer> to, std::error_code& why,
                        source where = source::current()) const {
    return io::read_some(its_record(), to, its_limit(where), why);
  }

  // Never waits: nothing, or errc::operation_would_block, if there is nothing to read now. Never cancellation points.
  [[nodiscard]] std::optional<std::size_t> try_read_some(mutable_buffer to) const {
    std::error_code why;
    const std::size_t n = io::try_read_some(its_record(), to, why);
    if (why == std::errc::operation_would_block) return std::nullopt;
    io::throw_if(why, "read from", its_record());
    return n;
  }
  [[nodiscard]] std::size_t try_read_some(mutable_buffer to, std::error_code& why) const {
    return io::try_read_some(its_record(), to, why);
  }

  // Reads until the buffer is full. If the stream ends before, that is the error io_errc::stream_ended.
  void read_exactly(mutable_buffer to, source where = source::current()) const {
    checked([&](std::error_code& why) { return io::read_exactly(its_record(), to, its_limit(where), why); });
  }
  std::size_t read_exactly(mutable_buffer to, std::error_code& why, source where = source::current()) const {
    return io::read_exactly(its_record(), to, its_limit(where), why);
  }
  template <class Rep, class Period>
  void read_exactly_for(std::chrono::duration<Rep, Period> time, mutable_buffer to,
                        source where = source::current()) const {
    read_exactly_until(weft::detail::time_after(time), to, where);
  }
  void read_exactly_until(clock::time_point when, mutable_buffer to, source where = source::current()) const {
    checked([&](std::error_code& why) { return io::read_exactly(its_record(), to, {when, where}, why); });
  }

 protected:
  reading() = default;
  ~reading() = default;
  reading(const reading&) = default;
  reading& operator=(const reading&) = default;

 private:
  [[nodiscard]] io::fd_record& its_record() const { return static_cast<const Self&>(*this).record(); }
  [[nodiscard]] io::limit its_limit(source where) const { return static_cast<const Self&>(*this).usual_limit(where); }
  template <class F>
  std::size_t checked(F&& call) const {
    std::error_code why;
    const std::size_t n = call(why);
    if (why) [[unlikely]]
      io::throw_if(why, "read from", its_record());
    return n;
  }
};

template <class Self>
class writing {
 public:
  using source = std::source_location;

  // Writes what there is room for, at least one byte, and returns how many bytes that were.
  std::size_t write_some(const_buffer from, source where = source::current()) const {
    return checked([&](std::error_code& why) { return io::write_some(its_record(), from, its_limit(where), why); });
  }
  std::size_t write_some(const_buffer from, std::error_code& why, source where = source::current()) const {
    return io::write_some(its_record(), from, its_limit(where), why);
  }
  std::size_t write_some_until(clock::time_point when, const_buffer from, source where = source::current()) const {
    return checked([&](std::error_code& why) { return io::write_some(its_record(), from, {when, where}, why); });
  }
  std::size_t write_some_until(clock::time_point when, const_buffer from, std::error_code& why,
                               source where = source::current()) const {
    return io::write_some(its_record(), from, {when, where}, why);
  }
  // Writes from several buffers, one after the other.
  std::size_t write_some(std::span<const const_buffer> from, source where = source::current()) const {
    return checked([&](std::error_code& why) { return io::write_some(its_record(), from, its_limit(where), why); });
  }
  std::size_t write_some(std::span<const const_buffer> from, std::error_code& why,
                         source where = source::current()) const {
    return io::write_some(its_record(), from, its_limit(where), why);
  }

  // Never waits: nothing, or errc::operation_would_block, if there is no room now. Never cancellation points.
  [[nodiscard]] std::optional<std::size_t> try_write_some(const_buffer from) const {
    std::error_code why;
    const std::size_t n = io::try_write_some(its_record(), from, why);
    if (why == std::errc::operation_would_block) return std::nullopt;
    io::throw_if(why, "write to", its_record());
    return n;
  }
  [[nodiscard]] std::size_t try_write_some(const_buffer from, std::error_code& why) const {
    return io::try_write_some(its_record(), from, why);
  }

  // Writes everything. With an error code it returns how much was written before the error.
  void write_all(const_buffer from, source where = source::current()) const {
    checked([&](std::error_code& why) { return io::write_all(its_record(), from, its_limit(where), why); });
  }
  std::size_t write_all(const_buffer from, std::error_code& why, source where = source::current()) const {
    return io::write_all(its_record(), from, its_limit(where), why);
  }
  template <class Rep, class Period>
  void write_all_for(std::chrono::duration<Rep, Period> time, const_buffer from,
                     source where = source::current()) const {
    write_all_until(weft::detail::time_after(time), from, where);
  }
  void write_all_until(clock::time_point when, const_buffer from, source where = source::current()) const {
    checked([&](std::error_code& why) { return io::write_all(its_record(), from, {when, where}, why); });
  }
  std::size_t write_all_until(clock::time_point when, const_buffer from, std::error_code& why,
                              source where = source::current()) const {
    return io::write_all(its_record(), from, {when, where}, why);
  }
  // Writes several buffers, one after the other, in as few system calls as possible: write_all({head, body}).
  void write_all(std::span<const const_buffer> from, source where = source::current()) const {
    checked([&](std::error_code& why) { return io::write_all(its_record(), from, its_limit(where), why); });
  }
  void write_all(std::initializer_list<const_buffer> from, source where = source::current()) const {
    write_all(std::span(from.begin(), from.size()), where);
  }
  std::size_t write_all(std::span<const const_buffer> from, std::error_code& why,
                        source where = source::current()) const {
    return io::write_all(its_record(), from, its_limit(where), why);
  }

 protected:
  writing() = default;
  ~writing() = default;
  writing(const writing&) = default;
  writing& operator=(const writing&) = default;

 private:
  [[nodiscard]] io::fd_record& its_record() const { return static_cast<const Self&>(*this).record(); }
  [[nodiscard]] io::limit its_limit(source where) const { return static_cast<const Self&>(*this).usual_limit(where); }
  template <class F>
  std::size_t checked(F&& call) const {
    std::error_code why;
    const std::size_t n = call(why);
    if (why) [[unlikely]]
      io::throw_if(why, "write to", its_record());
    return n;
  }
};

}  // namespace detail

}  // namespace weft::inline v1::net
