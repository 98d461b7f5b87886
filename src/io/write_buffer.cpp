// What a buffered_writer has taken over and not yet written.
//
// It writes with write_some(), whose cancellation has written nothing. So the buffer always knows what the stream has, and
// whoever tries again after an error or a cancellation neither loses nor repeats a byte.
#include <algorithm>
#include <cstring>
#include <utility>

#include "io/begin_operation.hpp"
#include <weft/detail/text_core.hpp>

namespace weft::inline v1::io {
namespace {

// A stream that takes nothing and calls it no error would be asked for ever.
std::size_t write_once(const_buffer from, const byte_sink& to, std::source_location where, std::error_code& why) {
  const std::size_t n = to.write_some(to.stream, from, where, why);
  if (n == 0 && !why) why = std::make_error_code(std::errc::io_error);
  return n;
}

}  // namespace

write_buffer::write_buffer(std::size_t room) noexcept : capacity_(std::max<std::size_t>(room, 1)) {}

write_buffer::write_buffer(write_buffer&& other) noexcept
    : room_(std::move(other.room_)),
      capacity_(other.capacity_),
      begin_(std::exchange(other.begin_, 0)),
      end_(std::exchange(other.end_, 0)) {}

write_buffer& write_buffer::operator=(write_buffer&& other) noexcept {
  room_ = std::move(other.room_);
  capacity_ = other.capacity_;
  begin_ = std::exchange(other.begin_, 0);
  end_ = std::exchange(other.end_, 0);
  return *this;
}

// Returns false if it sets `why`.
bool write_buffer::empty_into(const byte_sink& to, std::source_location where, std::error_code& why) {
  while (begin_ != end_) {
    begin_ += write_once(held(), to, where, why);
    if (why) return false;
  }
  discard();
  return true;
}

// What does not fit is taken over after the buffer was emptied, so that a piece that the buffer can hold is taken over
// whole or not at all.
std::size_t write_buffer::write(const_buffer from, const byte_sink& to, std::source_location where,
                                std::error_code& why) {
  begin_operation(where, why);
  if (from.size() > capacity_ - end_ && !empty_into(to, where, why)) return 0;
  std::size_t done = 0;
  while (from.size() - done > capacity_) {
    done += write_once(from.after(done), to, where, why);
    if (why) return done;
  }
  if (room_ == nullptr) room_ = std::make_unique_for_overwrite<char[]>(capacity_);
  const const_buffer rest = from.after(done);
  if (rest.size() != 0) std::memcpy(room_.get() + end_, rest.data(), rest.size());
  end_ += rest.size();
  return from.size();
}

void write_buffer::flush(const byte_sink& to, std::source_location where, std::error_code& why) {
  begin_operation(where, why);
  (void)empty_into(to, where, why);
}

void throw_writing_error(const std::error_code& why, const std::string& stream) {
  throw std::system_error(why, stream.empty() ? "write" : "write to " + stream);
}

}  // namespace weft::inline v1::io
