#include "io/ring.hpp"

#include <linux/io_uring.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.hpp"

namespace weft::inline v1::io {
namespace {

// The words of the queues that the kernel reads or writes, with the orders that its documentation asks for. Nothing is
// in flight between two calls, so the calls themselves would order everything.
std::uint32_t load(const std::uint32_t* word) noexcept { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
void store(std::uint32_t* word, std::uint32_t value) noexcept { __atomic_store_n(word, value, __ATOMIC_RELEASE); }

template <class T>
T* at(void* base, std::uint32_t offset) noexcept {
  return reinterpret_cast<T*>(static_cast<std::byte*>(base) + offset);
}

}  // namespace

ring::~ring() {
  if (entries_ != nullptr) ::munmap(entries_, entries_size_);
  if (queues_ != nullptr) ::munmap(queues_, queues_size_);
  if (fd_ >= 0) calls_.close(fd_);
}

// The kernel has one mapping for both queues since Linux 5.4, and receives since 5.6. An older one is told by the
// missing feature, or says EINVAL to try_receive().
int ring::open(unsigned most) noexcept {
  io_uring_params about{};
  fd_ = calls_.ring_setup(most, &about);
  if (fd_ < 0) return last_error_number();
  if ((about.features & IORING_FEAT_SINGLE_MMAP) == 0) return ENOSYS;
  queues_size_ = std::max<std::size_t>(about.sq_off.array + about.sq_entries * sizeof(std::uint32_t),
                                       about.cq_off.cqes + about.cq_entries * sizeof(io_uring_cqe));
  queues_ = calls_.ring_map(queues_size_, fd_, IORING_OFF_SQ_RING);
  if (queues_ == nullptr) return last_error_number();
  entries_size_ = about.sq_entries * sizeof(io_uring_sqe);
  entries_ = static_cast<io_uring_sqe*>(calls_.ring_map(entries_size_, fd_, IORING_OFF_SQES));
  if (entries_ == nullptr) return last_error_number();
  submitted_ = {at<std::uint32_t>(queues_, about.sq_off.head), at<std::uint32_t>(queues_, about.sq_off.tail),
                about.sq_entries - 1};
  completed_ = {at<std::uint32_t>(queues_, about.cq_off.head), at<std::uint32_t>(queues_, about.cq_off.tail),
                about.cq_entries - 1};
  outcomes_ = at<io_uring_cqe>(queues_, about.cq_off.cqes);
  // Each place of the queue names the entry with its own number, for ever.
  auto* places = at<std::uint32_t>(queues_, about.sq_off.array);
  for (std::uint32_t i = 0; i < about.sq_entries; ++i) places[i] = i;
  return 0;
}

ring::refusal ring::try_receive() noexcept {
  int both[2];
  if (calls_.socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) != 0) return {"socketpair", last_error_number()};
  char room;
  std::ptrdiff_t outcome = 0;  // an end of stream, which cannot come: both sockets are open
  receive(both[0], &room, sizeof room, &outcome);
  const int error = submit();
  for (const int fd : both) calls_.close(fd);
  if (error != 0) return {"io_uring_enter", error};
  if (outcome == -EAGAIN) return {};
  return {"IORING_OP_RECV", outcome < 0 ? static_cast<int>(-outcome) : EIO};
}

void ring::receive(int fd, void* to, std::size_t size, std::ptrdiff_t* outcome) noexcept {
  io_uring_sqe& e = entries_[(*submitted_.tail + queued_++) & submitted_.mask];
  std::memset(&e, 0, sizeof e);
  e.opcode = IORING_OP_RECV;
  e.fd = fd;
  e.addr = reinterpret_cast<std::uintptr_t>(to);
  e.len = static_cast<std::uint32_t>(size);
  e.msg_flags = MSG_DONTWAIT;
  e.user_data = reinterpret_cast<std::uintptr_t>(outcome);
}

int ring::submit() noexcept {
  const std::uint32_t first = *submitted_.tail;
  store(submitted_.tail, first + queued_);
  const int why = calls_.ring_enter(fd_, queued_, 0, 0) < 0 ? last_error_number() : 0;
  queued_ = 0;
  const std::uint32_t taken = load(submitted_.head) - first;
  store(submitted_.tail, first + taken);  // io.U2: nobody but this thread's call reads it
  for (unsigned come = reap(); come < taken; come += reap()) {
    // Never seen. But a buffer that the kernel still has must not be given back (io.U1).
    if (calls_.ring_enter(fd_, 0, taken - come, IORING_ENTER_GETEVENTS) < 0)
      base::require(last_error_number() == EINTR, "io_uring does not complete a receive that was told not to wait");
  }
  return why;
}

unsigned ring::reap() noexcept {
  const std::uint32_t first = *completed_.head;
  const std::uint32_t end = load(completed_.tail);
  for (std::uint32_t i = first; i != end; ++i) {
    const io_uring_cqe& c = outcomes_[i & completed_.mask];
    *reinterpret_cast<std::ptrdiff_t*>(static_cast<std::uintptr_t>(c.user_data)) = c.res;
  }
  store(completed_.head, end);
  return end - first;
}

}  // namespace weft::inline v1::io
