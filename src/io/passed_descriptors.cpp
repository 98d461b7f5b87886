// Descriptors that go from process to process over a Unix socket (unix(7), SCM_RIGHTS).
#include <sys/socket.h>

#include <cstring>
#include <utility>

#include "io/transfer.hpp"
#include <weft/net/unix.hpp>

namespace weft::inline v1::net {
namespace {

constexpr waits::wait_kind send_kind{"send descriptors", waits::kind_number::write};
constexpr waits::wait_kind receive_kind{"receive descriptors", waits::kind_number::read};

constexpr std::size_t most_descriptors = 253;  // SCM_MAX_FD of the kernel, for one message
// A socket that was adopted may have the option SO_PASSCRED, and then there is a second part.
constexpr std::size_t room_for_control = CMSG_SPACE(most_descriptors * sizeof(int)) + CMSG_SPACE(sizeof(ucred));
struct alignas(cmsghdr) control_room {
  char bytes[room_for_control];
};

void put_descriptors(msghdr& m, std::span<const int> fds) noexcept {
  m.msg_controllen = CMSG_SPACE(fds.size_bytes());
  cmsghdr* c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(fds.size_bytes());
  std::memcpy(CMSG_DATA(c), fds.data(), fds.size_bytes());
}

// Numbers that are open and belong to nobody else. It closes those that nobody has taken over.
class new_numbers {
 public:
  explicit new_numbers(const io::kernel_calls& calls) noexcept : calls_(calls) {}
  ~new_numbers() {
    while (taken_ < count_) calls_.close(numbers_[taken_++]);
  }
  new_numbers(const new_numbers&) = delete;
  new_numbers& operator=(const new_numbers&) = delete;

  void collect(msghdr& m) noexcept {
    for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t bytes = c->cmsg_len - CMSG_LEN(0);
      std::memcpy(numbers_ + count_, CMSG_DATA(c), bytes);
      count_ += bytes / sizeof(int);
    }
  }
  [[nodiscard]] std::vector<descriptor> take_over() {
    std::vector<descriptor> all;
    all.reserve(count_);
    while (taken_ < count_) all.push_back(descriptor::own(numbers_[taken_++]));
    return all;
  }

 private:
  const io::kernel_calls& calls_;
  int numbers_[room_for_control / sizeof(int)];
  std::size_t count_ = 0;
  std::size_t taken_ = 0;
};

}  // namespace

std::size_t unix_stream::send_descriptors(const_buffer bytes, std::span<const int> fds, std::error_code& why,
                                          source where) const {
  const io::limit l = usual_limit(where);
  io::fd_record& r = record();
  if (fds.empty()) return io::write_all(r, bytes, l, why);
  if (bytes.size() == 0 || fds.size() > most_descriptors) {
    why = std::make_error_code(std::errc::invalid_argument);
    return 0;
  }
  const std::ptrdiff_t first =
      io::transfer(r, io::side::write, bytes.size(), {send_kind, l}, why, [&](int fd) noexcept {
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): a send does not write
        iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
        control_room room{};
        msghdr m{};
        m.msg_iov = &part;
        m.msg_iovlen = 1;
        m.msg_control = room.bytes;
        put_descriptors(m, fds);
        return io::outcome_of(r.calls().sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL));
      });
  if (why) return 0;
  const auto done = static_cast<std::size_t>(first);
  if (done == bytes.size()) return done;
  return done + io::write_all(r, bytes.after(done), l, why);
}

void unix_stream::send_descriptors(const_buffer bytes, std::span<const int> fds, source where) const {
  std::error_code why;
  (void)send_descriptors(bytes, fds, why, where);
  io::throw_if(why, "send descriptors to", record());
}

received_descriptors unix_stream::recv_descriptors(mutable_buffer to, std::error_code& why, source where) const {
  io::fd_record& r = record();
  // A message without room for a byte would not take the descriptors off the queue, and would look like the end.
  if (to.size() == 0) {
    why = std::make_error_code(std::errc::invalid_argument);
    return {};
  }
  new_numbers came(r.calls());
  bool is_cut = false;
  const std::ptrdiff_t n =
      io::transfer(r, io::side::read, to.size(), {receive_kind, usual_limit(where)}, why, [&](int fd) noexcept {
        iovec part{to.data(), to.size()};
        control_room room;
        msghdr m{};
        m.msg_iov = &part;
        m.msg_iovlen = 1;
        m.msg_control = room.bytes;
        m.msg_controllen = sizeof room.bytes;
        const std::ptrdiff_t got = io::outcome_of(r.calls().recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
        if (got < 0) return got;
        came.collect(m);
        is_cut = (m.msg_flags & MSG_CTRUNC) != 0;
        return got;
      });
  if (why) return {};
  received_descriptors all{static_cast<std::size_t>(n), {}};
  // The room is enough for whatever can be sent, so the kernel has found no number for the rest.
  if (is_cut)
    why = std::make_error_code(std::errc::too_many_files_open);
  else
    all.descriptors = came.take_over();
  return all;
}

received_descriptors unix_stream::recv_descriptors(mutable_buffer to, source where) const {
  std::error_code why;
  received_descriptors all = recv_descriptors(to, why, where);
  io::throw_if(why, "receive descriptors from", record());
  return all;
}

}  // namespace weft::inline v1::net
