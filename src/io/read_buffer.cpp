// What a buffered_reader has read and not yet given out.
//
// Cancellation and errors lose nothing, because bytes leave the buffer in one place, taken(), which neither waits nor
// fails, and come into it in one place, fill(), right after the stream has given them.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "io/begin_operation.hpp"
#include <weft/detail/task_core.hpp>
#include <weft/detail/text_core.hpp>
#include <weft/io_error.hpp>

namespace weft::inline v1::io {
namespace {

std::error_code too_long() noexcept { return std::make_error_code(std::errc::message_size); }

// The place of `what` in `all`, which does not begin before `from`.
std::size_t position_of(std::string_view what, std::string_view all, std::size_t from) noexcept {
  const std::string_view rest = all.substr(from);
  if (rest.size() < what.size()) return std::string_view::npos;
  const void* at = what.size() == 1 ? std::memchr(rest.data(), what.front(), rest.size())
                                    : ::memmem(rest.data(), rest.size(), what.data(), what.size());
  return at == nullptr ? std::string_view::npos : static_cast<std::size_t>(static_cast<const char*>(at) - all.data());
}

}  // namespace

// The sums below do not overflow with a quarter of all there is.
read_buffer::read_buffer(std::size_t room, std::size_t longest) noexcept
    : first_capacity_(std::clamp<std::size_t>(room, 1, SIZE_MAX / 4)),
      longest_(std::min(longest, SIZE_MAX / 4)) {}

read_buffer::read_buffer(read_buffer&& other) noexcept
    : room_(std::move(other.room_)),
      capacity_(std::exchange(other.capacity_, 0)),
      begin_(std::exchange(other.begin_, 0)),
      end_(std::exchange(other.end_, 0)),
      first_capacity_(other.first_capacity_),
      longest_(other.longest_) {}

read_buffer& read_buffer::operator=(read_buffer&& other) noexcept {
  room_ = std::move(other.room_);
  capacity_ = std::exchange(other.capacity_, 0);
  begin_ = std::exchange(other.begin_, 0);
  end_ = std::exchange(other.end_, 0);
  first_capacity_ = other.first_capacity_;
  longest_ = other.longest_;
  return *this;
}

// ---- what is held ---------------------------------------------------------------------------------------------------

// The first n bytes, which leave the buffer together with as many as are said behind them. An empty buffer begins anew
// at its front, so that a connection with small requests touches no more memory than those need.
std::string_view read_buffer::taken(std::size_t n, std::size_t behind) noexcept {
  const std::string_view all = held();
  begin_ += n + behind;
  if (begin_ == end_) begin_ = end_ = 0;
  return all.substr(0, n);
}

void read_buffer::consume(std::size_t n) {
  if (n > held().size()) detail::throw_usage("buffered_reader::consume is called with more than is buffered");
  (void)taken(n, 0);
}

std::string read_buffer::take() {
  std::string all(held());
  begin_ = end_ = 0;
  return all;
}

// ---- the stream -----------------------------------------------------------------------------------------------------

// Makes room for at least one byte. `most` is how much the caller wants to hold at most, and it holds less now.
void read_buffer::make_room(std::size_t most) {
  if (capacity_ - end_ > capacity_ / 2) return;
  if (begin_ != 0) {
    std::memmove(room_.get(), room_.get() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  if (end_ < capacity_) return;
  const std::size_t capacity = capacity_ == 0 ? first_capacity_ : std::min(2 * capacity_, most);
  auto larger = std::make_unique_for_overwrite<char[]>(capacity);
  if (end_ != 0) std::memcpy(larger.get(), room_.get(), end_);
  room_ = std::move(larger);
  capacity_ = capacity;
}

// Reads once. Returns false at the end of the stream, and if it sets `why`.
bool read_buffer::fill(std::size_t most, const byte_source& from, const reading_terms& t, std::error_code& why) {
  make_room(most);
  const std::size_t n = from.read_some(from.stream, {room_.get() + end_, capacity_ - end_}, t, why);
  end_ += n;
  return n != 0;
}

// Reads until the delimiter is there, and returns where it stands; nothing if the stream ends before, or on an error.
// More than `most` bytes before the delimiter are an error, however they come in.
std::optional<std::size_t> read_buffer::reach(std::string_view delimiter, std::size_t most, const byte_source& from,
                                              const reading_terms& t, std::error_code& why) {
  for (std::size_t looked_at = 0;;) {
    const std::size_t at = position_of(delimiter, held(), looked_at);
    const bool is_there = at != std::string_view::npos;
    // A delimiter that is not whole yet may have begun in the last bytes.
    const std::size_t size = held().size();
    looked_at = size < delimiter.size() ? 0 : size - (delimiter.size() - 1);
    if ((is_there ? at : looked_at) > most) {
      why = too_long();
      return std::nullopt;
    }
    if (is_there) return at;
    if (!fill(most + delimiter.size(), from, t, why)) return std::nullopt;
  }
}

// Reads until n bytes are there. Returns false if the stream ends before, or on an error.
bool read_buffer::collect(std::size_t n, const byte_source& from, const reading_terms& t, std::error_code& why) {
  if (n > longest_) why = too_long();
  while (!why && held().size() < n)
    if (!fill(n, from, t, why)) break;
  return !why && held().size() >= n;
}

// ---- operations -----------------------------------------------------------------------------------------------------

// "\r" belongs to the end of the line only if "\n" follows, so a line may look one byte too long until it is complete.
read_buffer::found read_buffer::read_line(const byte_source& from, const reading_terms& t, std::error_code& why) {
  begin_operation(t.where, why);
  const std::optional<std::size_t> at = reach("\n", longest_ + 1, from, t, why);
  if (why) return std::nullopt;
  const std::string_view all = held();
  if (!at && all.empty()) return std::nullopt;
  const std::size_t end = at.value_or(all.size());
  const std::size_t size = at && end != 0 && all[end - 1] == '\r' ? end - 1 : end;
  if (size > longest_) {
    why = too_long();
    return std::nullopt;
  }
  return taken(size, (at ? end + 1 : end) - size);
}

read_buffer::found read_buffer::read_until(std::string_view delimiter, const byte_source& from, const reading_terms& t,
                                           std::error_code& why) {
  if (delimiter.empty()) detail::throw_usage("buffered_reader::read_until is called with an empty delimiter", t.where);
  begin_operation(t.where, why);
  if (const std::optional<std::size_t> at = reach(delimiter, longest_, from, t, why))
    return taken(*at, delimiter.size());
  if (!why && !held().empty()) why = io_errc::stream_ended;
  return std::nullopt;
}

std::string_view read_buffer::read_exactly(std::size_t n, const byte_source& from, const reading_terms& t,
                                           std::error_code& why) {
  begin_operation(t.where, why);
  if (collect(n, from, t, why)) return taken(n, 0);
  if (!why) why = io_errc::stream_ended;
  return {};
}

std::string_view read_buffer::peek(std::size_t n, const byte_source& from, const reading_terms& t,
                                   std::error_code& why) {
  begin_operation(t.where, why);
  (void)collect(n, from, t, why);
  return why ? std::string_view() : held().substr(0, n);
}

// Small pieces come through the buffer, so that many of them are one call of the kernel. Large ones need no copy.
std::size_t read_buffer::read_some(mutable_buffer to, const byte_source& from, const reading_terms& t,
                                   std::error_code& why) {
  begin_operation(t.where, why);
  if (to.size() == 0) return 0;
  if (held().empty()) {
    if (to.size() >= first_capacity_) return from.read_some(from.stream, to, t, why);
    if (!fill(first_capacity_, from, t, why)) return 0;
  }
  const std::string_view part = taken(std::min(to.size(), held().size()), 0);
  std::memcpy(to.data(), part.data(), part.size());
  return part.size();
}

std::size_t read_buffer::read_exactly(mutable_buffer to, const byte_source& from, const reading_terms& t,
                                      std::error_code& why) {
  std::size_t done = 0;
  do {
    const std::size_t n = read_some(to.after(done), from, t, why);
    if (n == 0 && !why && to.size() != 0) why = io_errc::stream_ended;
    done += n;
  } while (!why && done < to.size());
  return done;
}

void throw_reading_error(const std::error_code& why, const char* operation, const std::string& stream,
                         std::size_t longest) {
  std::string what = operation;
  if (!stream.empty()) what += " from " + stream;
  if (why == std::errc::message_size) what += " (the limit is " + std::to_string(longest) + " bytes)";
  throw std::system_error(why, what);
}

}  // namespace weft::inline v1::io
