#include <weft/net/socket_stream.hpp>

#include <sys/socket.h>

#include "io/socket.hpp"

namespace weft::inline v1::net {
namespace {

int native(half which) noexcept {
  switch (which) {
    case half::read: return SHUT_RD;
    case half::write: return SHUT_WR;
    case half::both: break;
  }
  return SHUT_RDWR;
}

}  // namespace

namespace detail {

endpoint socket_handle::local_endpoint() const { return io::local_endpoint(record()); }
endpoint socket_handle::remote_endpoint() const { return io::remote_endpoint(record()); }

}  // namespace detail

void socket_stream::shutdown(half which, std::error_code& why) const {
  io::fd_record& r = record();
  const io::use in_use(r);
  why = in_use ? std::error_code() : io::closed_by_another();
  if (in_use && r.calls().shutdown(r.fd(), native(which)) != 0) why = io::last_error();
}

void socket_stream::shutdown(half which) const {
  std::error_code why;
  shutdown(which, why);
  io::throw_if(why, "shut down", record());
}

std::pair<read_half, write_half> socket_stream::split() && {
  io::fd_handle second = handle_.share();
  return {read_half(std::move(handle_), limit_), write_half(std::move(second), limit_)};
}

write_half::~write_half() {
  if (!is_open()) return;
  const io::use in_use(record());
  if (in_use) (void)record().calls().shutdown(record().fd(), SHUT_WR);
}

write_half& write_half::operator=(write_half&& other) noexcept {
  const write_half before(std::move(*this));
  handle_ = std::move(other.handle_);
  limit_ = other.limit_;
  return *this;
}

}  // namespace weft::inline v1::net
