// Sending and receiving datagrams (weft/net/datagram_socket.hpp).
//
// A datagram that is shorter than the buffer says nothing about the next one. So a socket of this kind does not have the
// trait `short_is_all`. Only EAGAIN means that there is no more, or a call that could have received several datagrams and
// has received fewer. An error that cut such a call short has usually come with an edge of its own, which keeps the
// direction worth trying (io.D1). If a poll has taken that edge just before, the error is told at the next edge.
#include <sys/socket.h>

#include <algorithm>
#include <string>

#include "io/local_room.hpp"
#include "io/socket.hpp"
#include <weft/errors.hpp>
#include <weft/net/datagram_socket.hpp>

namespace weft::inline v1::net {
namespace {

constexpr waits::wait_kind recv_kind{"receive a datagram", waits::kind_number::read};
constexpr waits::wait_kind send_kind{"send a datagram", waits::kind_number::write};
constexpr int send_flags = MSG_DONTWAIT | MSG_NOSIGNAL;

// Where the kernel writes the address of a sender. A Unix socket without a name gets no bytes at all from it.
class sender_room {
 public:
  [[nodiscard]] static constexpr socklen_t size() noexcept { return sizeof bytes_; }
  [[nodiscard]] void* data() noexcept { return bytes_; }
  [[nodiscard]] endpoint get(socklen_t written) const {
    if (written == 0) {
      const sa_family_t unnamed = AF_UNIX;
      return {reinterpret_cast<const sockaddr*>(&unnamed), sizeof unnamed};
    }
    return {reinterpret_cast<const sockaddr*>(bytes_), std::min(written, size())};
  }

 private:
  alignas(8) unsigned char bytes_[112];  // as an endpoint has it
};

msghdr message_of(iovec& part, const void* name, socklen_t name_size) noexcept {
  msghdr m{};
  m.msg_name = const_cast<void*>(name);  // NOLINT(cppcoreguidelines-pro-type-const-cast): a send does not write
  m.msg_namelen = name_size;
  m.msg_iov = &part;
  m.msg_iovlen = 1;
  return m;
}

iovec part_of(mutable_buffer b) noexcept { return {b.data(), b.size()}; }
// NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): a send does not write
iovec part_of(const_buffer b) noexcept { return {const_cast<std::byte*>(b.data()), b.size()}; }

// ---- messages --------------------------------------------------------------------------------------------------------

std::string text_of(const endpoint& e) {
  const bool is_unnamed = e.family() == address_family::local && e.path().empty() && !e.is_abstract();
  return is_unnamed ? "a Unix socket without a name" : e.to_string();
}

// The peer if there is one, and otherwise the socket's own address.
std::string operation_on(io::fd_record& r, const char* with_peer, const char* without_peer) {
  const io::use in_use(r);
  if (!in_use) return std::string(without_peer) + " a closed socket";
  sender_room room;
  socklen_t size = sender_room::size();
  auto* address = static_cast<sockaddr*>(room.data());
  if (r.calls().getpeername(r.fd(), address, &size) == 0) return std::string(with_peer) + ' ' + text_of(room.get(size));
  size = sender_room::size();
  if (r.calls().getsockname(r.fd(), address, &size) == 0)
    return std::string(without_peer) + ' ' + text_of(room.get(size));
  return std::string(without_peer) + " descriptor " + std::to_string(r.fd());
}

void tell_receiver(io::fd_record& r, const std::error_code& why, std::error_code* told) {
  if (told != nullptr)
    *told = why;
  else if (why)
    throw std::system_error(why, operation_on(r, "receive from", "receive at"));
}

void tell_sender(io::fd_record& r, const endpoint& to, const std::error_code& why, std::error_code* told) {
  if (told != nullptr)
    *told = why;
  else if (why)
    throw std::system_error(
        why, to.family() != address_family::none ? "send to " + text_of(to) : operation_on(r, "send to", "send from"));
}

// ---- one datagram ----------------------------------------------------------------------------------------------------

received receive_one(io::fd_record& r, mutable_buffer room, bool asks_for_sender, const io::limit& l,
                     std::error_code& why) {
  received got;
  sender_room sender;
  msghdr m{};
  const std::ptrdiff_t n = io::transfer(r, io::side::read, room.size(), {recv_kind, l}, why, [&](int fd) noexcept {
    iovec part = part_of(room);
    m = message_of(part, asks_for_sender ? sender.data() : nullptr, asks_for_sender ? sender_room::size() : 0);
    return io::outcome_of(r.calls().recvmsg(fd, &m, MSG_DONTWAIT));
  });
  if (n < 0) return got;
  got.size = static_cast<std::size_t>(n);
  got.truncated = (m.msg_flags & MSG_TRUNC) != 0;
  if (asks_for_sender) got.from = sender.get(m.msg_namelen);
  return got;
}

template <class Call>
std::ptrdiff_t send_by(io::fd_record& r, const endpoint& first, std::size_t asked, const io::limit& l,
                       std::error_code& why, Call call) {
  const io::terms t(send_kind, l);
  if (first.family() == address_family::local) return io::send_to_local(r, first, t, why, call);
  return io::transfer(r, io::side::write, asked, t, why, call);
}

void send_one(io::fd_record& r, const_buffer bytes, const endpoint& to, const io::limit& l, std::error_code& why) {
  (void)send_by(r, to, bytes.size(), l, why, [&](int fd) noexcept {
    iovec part = part_of(bytes);
    const msghdr m = message_of(part, to.size() != 0 ? to.data() : nullptr, to.size());
    return io::outcome_of(r.calls().sendmsg(fd, &m, send_flags));
  });
}

// ---- several datagrams -----------------------------------------------------------------------------------------------

// How many go into one system call. They need 6 KiB of the task's stack.
constexpr std::size_t most_at_once = 32;

class batch {
 public:
  template <class Buffer>
  void add(Buffer b, const void* name, socklen_t name_size) noexcept {
    parts_[count_] = part_of(b);
    heads_[count_] = {message_of(parts_[count_], name, name_size), 0};
    ++count_;
  }
  [[nodiscard]] unsigned count() const noexcept { return count_; }
  [[nodiscard]] mmsghdr* heads() noexcept { return heads_; }
  // Small datagrams count as one operation together, many bytes as several.
  void spend_budget(std::size_t done) const noexcept {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < done; ++i) bytes += heads_[i].msg_len;
    io::spend_budget_on(bytes);
  }

 private:
  unsigned count_ = 0;
  iovec parts_[most_at_once];
  mmsghdr heads_[most_at_once];
};

// The kernel would be asked for nothing, and may answer with an error that concerns another operation.
std::size_t pass_without_datagrams(const io::limit& l, std::error_code* told) {
  locks::pass_suspension_point(l.where);
  if (told != nullptr) told->clear();
  return 0;
}

}  // namespace

received datagram_socket::receive_from(mutable_buffer room, const io::limit& l, std::error_code* told) const {
  std::error_code why;
  received got = receive_one(record(), room, true, l, why);
  tell_receiver(record(), why, told);
  return got;
}

std::size_t datagram_socket::receive(mutable_buffer room, const io::limit& l, std::error_code* told) const {
  std::error_code why;
  const received got = receive_one(record(), room, false, l, why);
  if (got.truncated) why = std::make_error_code(std::errc::message_size);
  tell_receiver(record(), why, told);
  return got.size;
}

void datagram_socket::deliver_to(const_buffer bytes, const endpoint& to, const io::limit& l,
                                 std::error_code* told) const {
  if (to.family() == address_family::none) throw usage_error("send_to needs an address, and got none");
  std::error_code why;
  send_one(record(), bytes, to, l, why);
  tell_sender(record(), to, why, told);
}

void datagram_socket::deliver(const_buffer bytes, const io::limit& l, std::error_code* told) const {
  std::error_code why;
  send_one(record(), bytes, {}, l, why);
  tell_sender(record(), {}, why, told);
}

std::size_t datagram_socket::receive_many(std::span<incoming> to, const io::limit& l, std::error_code* told) const {
  io::fd_record& r = record();
  if (to.empty()) return pass_without_datagrams(l, told);
  std::error_code why;
  sender_room senders[most_at_once];
  batch all;
  for (const incoming& one : to.first(std::min(to.size(), most_at_once)))
    all.add(one.room, senders[all.count()].data(), sender_room::size());
  const std::ptrdiff_t n = io::transfer(
      r, io::side::read, all.count(), {recv_kind, l, true}, why,
      [&](int fd) noexcept { return io::outcome_of(r.calls().recvmmsg(fd, all.heads(), all.count(), MSG_DONTWAIT)); });
  tell_receiver(r, why, told);
  const std::size_t done = n < 0 ? 0 : static_cast<std::size_t>(n);
  for (std::size_t i = 0; i < done; ++i) {
    const mmsghdr& head = all.heads()[i];
    to[i].size = head.msg_len;
    to[i].from = senders[i].get(head.msg_hdr.msg_namelen);
    to[i].truncated = (head.msg_hdr.msg_flags & MSG_TRUNC) != 0;
  }
  all.spend_budget(done);
  return done;
}

std::size_t datagram_socket::deliver_many(std::span<const outgoing> all, const io::limit& l,
                                          std::error_code* told) const {
  io::fd_record& r = record();
  if (all.empty()) return pass_without_datagrams(l, told);
  std::error_code why;
  std::size_t done = 0;
  do {
    batch part;
    for (const outgoing& one : all.subspan(done, std::min(all.size() - done, most_at_once)))
      part.add(one.bytes, one.to.size() != 0 ? one.to.data() : nullptr, one.to.size());
    const std::ptrdiff_t n = send_by(r, all[done].to, 0, l, why, [&](int fd) noexcept {
      return io::outcome_of(r.calls().sendmmsg(fd, part.heads(), part.count(), send_flags));
    });
    if (n > 0) {
      part.spend_budget(static_cast<std::size_t>(n));
      done += static_cast<std::size_t>(n);
    }
  } while (!why && done < all.size());
  tell_sender(r, done < all.size() ? all[done].to : endpoint(), why, told);
  return done;
}

// ---- the peer --------------------------------------------------------------------------------------------------------

namespace {

std::error_code set_peer(io::fd_record& r, const sockaddr* to, socklen_t size) noexcept {
  const io::use in_use(r);
  if (!in_use) return io::closed_by_another();
  return r.calls().connect(r.fd(), to, size) == 0 ? std::error_code() : io::last_error();
}

}  // namespace

void datagram_socket::connect(const endpoint& to, std::error_code& why) const {
  if (to.family() == address_family::none) throw usage_error("connect needs an address, and got none");
  why = set_peer(record(), to.data(), to.size());
}

void datagram_socket::connect(const endpoint& to) const {
  std::error_code why;
  connect(to, why);
  io::throw_if(why, "connect to", to);
}

void datagram_socket::disconnect(std::error_code& why) const {
  sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  why = set_peer(record(), &nobody, sizeof nobody);
}

void datagram_socket::disconnect() const {
  std::error_code why;
  disconnect(why);
  if (why) throw std::system_error(why, operation_on(record(), "disconnect from", "disconnect"));
}

}  // namespace weft::inline v1::net
