#include "io/file_transfer.hpp"

namespace weft::inline v1::io {
namespace {

// Calls call(vectors, how many of them, offset). A count of 0 ends the transfer with `at_zero`.
template <class Transfer, class Call>
std::error_code transfer_by(Call call, Transfer& t, amount much, std::error_code at_zero) noexcept {
  typename Transfer::vectors v;
  while (!t.is_complete()) {
    ssize_t n = 0;
    const int vectors = t.next(v);
    if (const std::error_code why = uninterrupted([&] { return n = call(v.data(), vectors, t.offset()); })) return why;
    if (n == 0) return at_zero;
    t.advance(static_cast<std::size_t>(n));
    if (much == amount::some) break;
  }
  return {};
}

}  // namespace

std::error_code go_on(file_read& t, amount much, const kernel_calls& calls, int fd, int flags) noexcept {
  return transfer_by([&](const iovec* to, int n, off_t offset) { return calls.preadv2(fd, to, n, offset, flags); }, t,
                     much, {});
}

// No kernel is known to write 0 bytes of several. One that did would be asked for ever, so it is an error.
std::error_code go_on(file_write& t, amount much, const kernel_calls& calls, int fd) noexcept {
  return transfer_by([&](const iovec* from, int n, off_t offset) { return calls.pwritev2(fd, from, n, offset, 0); }, t,
                     much, std::make_error_code(std::errc::io_error));
}

}  // namespace weft::inline v1::io
