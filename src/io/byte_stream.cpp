// Reading and writing bytes (weft/detail/fd_handle.hpp).
#include <limits.h>
#include <sys/uio.h>

#include <algorithm>
#include <string>

#include "io/plain_calls.hpp"
#include "io/transfer.hpp"
#include <weft/detail/fd_handle.hpp>
#include <weft/detail/task_core.hpp>
#include <weft/io_error.hpp>

namespace weft::inline v1 {
namespace {

class category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "weft.io"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<io_errc>(code)) {
      case io_errc::stream_ended: return "the stream ended before everything was read that was asked for";
    }
    return "unknown error";
  }
};

}  // namespace

const std::error_category& io_category() noexcept {
  static const category the_category;
  return the_category;
}

}  // namespace weft::inline v1

namespace weft::inline v1::io {
namespace {

constexpr waits::wait_kind read_kind{"read", waits::kind_number::read};
constexpr waits::wait_kind write_kind{"write", waits::kind_number::write};

std::size_t counted(std::ptrdiff_t n) noexcept { return n < 0 ? 0 : static_cast<std::size_t>(n); }

// As many of the buffers as one system call takes, from a place in them on. Empty ones are left out.
template <class Buffer>
class portion_of {
 public:
  explicit portion_of(std::span<const Buffer> all) noexcept : rest_(all) {}

  // Fills in the next system call's part.
  void fill() noexcept {
    count_ = size_ = 0;
    std::size_t skip = within_;
    for (const Buffer& b : rest_) {
      if (count_ == most) break;
      const Buffer part = b.after(std::exchange(skip, 0));
      if (part.size() == 0) continue;
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): a send does not write
      parts_[count_++] = {const_cast<std::byte*>(part.data()), part.size()};
      size_ += part.size();
    }
  }
  void advance(std::size_t n) noexcept {
    while (!rest_.empty() && n >= rest_.front().size() - within_) {
      n -= rest_.front().size() - within_;
      within_ = 0;
      rest_ = rest_.subspan(1);
      if (n == 0 && (rest_.empty() || rest_.front().size() != 0)) break;
    }
    within_ += n;
  }
  [[nodiscard]] msghdr message() noexcept {
    msghdr m{};
    m.msg_iov = parts_;
    m.msg_iovlen = count_;
    return m;
  }
  [[nodiscard]] std::span<const iovec> vectors() const noexcept { return {parts_, count_}; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  static constexpr std::size_t most = 64;  // more would only make the frame larger
  static_assert(most <= IOV_MAX);
  std::span<const Buffer> rest_;
  std::size_t within_ = 0;  // of the first of them
  iovec parts_[most];
  std::size_t count_ = 0;
  std::size_t size_ = 0;
};

bool is_socket(const fd_record& r) noexcept { return r.traits().kind == fd_kind::socket; }

// The system calls, for sockets and for what is none (plain_calls.hpp).
std::ptrdiff_t receive_bytes(fd_record& r, mutable_buffer to) {
  if (is_socket(r)) [[likely]]
    return outcome_of(r.calls().recv(r.fd(), to.data(), to.size(), MSG_DONTWAIT));
  const iovec one{to.data(), to.size()};
  return read_plain(r, {&one, 1});
}
std::ptrdiff_t send_bytes(fd_record& r, const_buffer from) {
  if (is_socket(r)) [[likely]]
    return outcome_of(r.calls().send(r.fd(), from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): a write does not change what it writes
  const iovec one{const_cast<std::byte*>(from.data()), from.size()};
  return write_plain(r, {&one, 1});
}
std::ptrdiff_t receive_bytes(fd_record& r, portion_of<mutable_buffer>& to) {
  if (!is_socket(r)) return read_plain(r, to.vectors());
  msghdr m = to.message();
  return outcome_of(r.calls().recvmsg(r.fd(), &m, MSG_DONTWAIT));
}
std::ptrdiff_t send_bytes(fd_record& r, portion_of<const_buffer>& from) {
  if (!is_socket(r)) return write_plain(r, from.vectors());
  const msghdr m = from.message();
  return outcome_of(r.calls().sendmsg(r.fd(), &m, MSG_DONTWAIT | MSG_NOSIGNAL));
}

// A read into one buffer, which the poller may make for a task that waits.
struct receive_call {
  fd_record& from;
  const mutable_buffer to;

  std::ptrdiff_t operator()(int) const { return receive_bytes(from, to); }
  [[nodiscard]] reception wanted() const noexcept { return {to.data(), to.size()}; }
};

}  // namespace

// ---- one call -------------------------------------------------------------------------------------------------------

// A read of nothing is no question to the kernel, which would answer as at the end of the stream.
std::size_t read_some(fd_record& r, mutable_buffer to, const limit& l, std::error_code& why) {
  if (to.size() == 0) [[unlikely]]
    return why.clear(), locks::pass_suspension_point(l.where), 0;
  return counted(transfer(r, side::read, to.size(), terms(read_kind, l), why, receive_call{r, to}));
}

std::size_t write_some(fd_record& r, const_buffer from, const limit& l, std::error_code& why) {
  if (from.size() == 0) [[unlikely]]
    return why.clear(), locks::pass_suspension_point(l.where), 0;
  return counted(
      transfer(r, side::write, from.size(), terms(write_kind, l), why, [&](int) { return send_bytes(r, from); }));
}

std::size_t read_some(fd_record& r, std::span<const mutable_buffer> to, const limit& l, std::error_code& why) {
  portion_of<mutable_buffer> part(to);
  part.fill();
  if (part.size() == 0) return read_some(r, mutable_buffer(nullptr, 0), l, why);
  return counted(
      transfer(r, side::read, part.size(), terms(read_kind, l), why, [&](int) { return receive_bytes(r, part); }));
}

std::size_t write_some(fd_record& r, std::span<const const_buffer> from, const limit& l, std::error_code& why) {
  portion_of<const_buffer> part(from);
  part.fill();
  if (part.size() == 0) return write_some(r, const_buffer(nullptr, 0), l, why);
  return counted(
      transfer(r, side::write, part.size(), terms(write_kind, l), why, [&](int) { return send_bytes(r, part); }));
}

// ---- without waiting -------------------------------------------------------------------------------------------------

std::size_t try_read_some(fd_record& r, mutable_buffer to, std::error_code& why) {
  if (to.size() == 0) [[unlikely]]
    return why.clear(), 0;
  return counted(try_transfer(r, side::read, to.size(), why, [&](int fd) noexcept {
    return outcome_of(r.calls().recv(fd, to.data(), to.size(), MSG_DONTWAIT));
  }));
}

std::size_t try_write_some(fd_record& r, const_buffer from, std::error_code& why) {
  if (from.size() == 0) [[unlikely]]
    return why.clear(), 0;
  return counted(try_transfer(r, side::write, from.size(), why, [&](int fd) noexcept {
    return outcome_of(r.calls().send(fd, from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
  }));
}

// ---- until all is done ----------------------------------------------------------------------------------------------

std::size_t read_exactly(fd_record& r, mutable_buffer to, const limit& l, std::error_code& why) {
  std::size_t done = 0;
  do {
    const std::size_t n = read_some(r, to.after(done), l, why);
    if (n == 0 && !why && to.size() != 0) why = io_errc::stream_ended;
    done += n;
  } while (!why && done < to.size());
  return done;
}

std::size_t write_all(fd_record& r, const_buffer from, const limit& l, std::error_code& why) {
  std::size_t done = 0;
  do done += write_some(r, from.after(done), l, why);
  while (!why && done < from.size());
  return done;
}

std::size_t write_all(fd_record& r, std::span<const const_buffer> from, const limit& l, std::error_code& why) {
  std::size_t done = 0;
  portion_of<const_buffer> part(from);
  part.fill();
  if (part.size() == 0) return write_some(r, const_buffer(nullptr, 0), l, why);
  for (; part.size() != 0; part.fill()) {
    const std::size_t n = counted(
        transfer(r, side::write, part.size(), terms(write_kind, l), why, [&](int) { return send_bytes(r, part); }));
    done += n;
    if (why) return done;
    part.advance(n);
  }
  return done;
}

// ---- handles --------------------------------------------------------------------------------------------------------

fd_handle fd_handle::share() const {
  record().add_owner();
  return fd_handle(*record_);
}
bool fd_handle::is_open() const noexcept { return record_ != nullptr && !record_->is_closed(); }
void fd_handle::close() noexcept {
  if (record_ != nullptr) record_->close();
}
int fd_handle::number() const { return record().is_closed() ? -1 : record_->fd(); }
int fd_handle::release() {
  const int fd = record().release();
  if (fd < 0) detail::throw_usage("a stream is released that is closed, or that another task uses");
  return fd;
}
void fd_handle::drop() noexcept { record_->drop_owner(); }
held_number::held_number(fd_record& r) noexcept : record_(r), is_held_(r.begin_use()) {}
held_number::~held_number() {
  if (is_held_) record_.end_use();
}
int held_number::get() const noexcept { return is_held_ ? record_.fd() : -1; }
const kernel_calls& held_number::kernel() const noexcept { return record_.calls(); }

void fd_handle::throw_empty() {
  detail::throw_usage("a stream or listener is used that was never opened, or was moved from");
}

}  // namespace weft::inline v1::io
