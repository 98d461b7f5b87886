#include "io/batcher.hpp"

#include <cerrno>
#include <cstdint>
#include <span>
#include <utility>

#include "io/reception.hpp"
#include "io/transfer.hpp"

namespace weft::inline v1::io {
namespace {

constexpr std::ptrdiff_t not_made = PTRDIFF_MIN;

// An outcome that says nothing of the socket, from which nothing was taken: no memory for the request, or a request that
// was given up. Every other error is the socket's, which has forgotten it by now: a second receive might find a clean
// end of the stream. That the kernel knows receives and allows them is certain since the ring was opened.
bool is_of_the_ring(std::ptrdiff_t outcome) noexcept {
  return outcome == not_made || outcome == -ENOMEM || outcome == -EINTR || outcome == -ECANCELED;
}

}  // namespace

std::size_t least_batch = 8;

void batcher::add(fd_record& r, limited_node& n) noexcept {
  if (n.wanted == nullptr || n.wanted->size > one_operation) return;
  if (r.traits().kind != fd_kind::socket || r.traits().borrowed || &r.calls() != &calls_) return;
  base::invariant(count_ < most, "a poll has claimed more readers than it may");
  entries_[count_++] = {&r, &n};
}

bool batcher::receive() noexcept {
  const std::span<const entry> batch(entries_, std::exchange(count_, 0));
  if (batch.size() < least_batch || batch.empty()) return true;
  if (!ring_.is_open()) {
    if (const int error = ring_.open(most); error != 0) return give_up("io_uring_setup", error);
    if (const ring::refusal no = ring_.try_receive(); no.call != nullptr) return give_up(no.call, no.error);
  }
  for (const entry& e : batch) {
    reception& r = *e.waits->wanted;
    r.look_at(e.from->in(side::read));  // before the call (io.B4)
    r.outcome = not_made;
    ring_.receive(e.from->fd(), r.to, r.size, &r.outcome);
  }
  const int error = ring_.submit();
  for (const entry& e : batch)
    if (!is_of_the_ring(e.waits->wanted->outcome)) e.waits->mark |= direction::received;
  return error == 0 || give_up("io_uring_enter", error);
}

}  // namespace weft::inline v1::io
