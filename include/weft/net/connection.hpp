// The parts of a server that its templates need: a connection's place in it, and a listener with its acceptor.
#pragma once

#include <memory>
#include <source_location>

#include <weft/detail/config.hpp>
#include <weft/join_handle.hpp>
#include <weft/net/socket_stream.hpp>

namespace weft::inline v1::net::detail {

class roster;  // src/io/roster.hpp
struct roster_entry;
struct WEFT_API roster_deleter {
  void operator()(roster* r) const noexcept;
};
using roster_owner = std::unique_ptr<roster, roster_deleter>;

// A connection's place in the server. It is taken before the connection is accepted, and given back when this object
// ends, which must be after the end of the stream.
class WEFT_API connection {
 public:
  explicit connection(roster& in);
  connection(connection&& other) noexcept;
  ~connection();

  void wait_for_place(std::source_location where);  // while there are as many as allowed; a cancellation point
  [[nodiscard]] bool try_to_take_place() noexcept;
  // The server is responsible for the stream from now on. Its task is not spawned yet.
  void enter(const socket_stream& s) noexcept;
  void task_begins();  // called by the task
  void was_cut_short() noexcept;

 private:
  roster* in_;
  std::unique_ptr<roster_entry> entry_;
};

// The presence of an acceptor: while it lives, connections may still come.
class WEFT_API acceptor_presence {
 public:
  explicit acceptor_presence(roster& in) noexcept;
  acceptor_presence(acceptor_presence&& other) noexcept;
  ~acceptor_presence();

 private:
  roster* in_;
};

// A listener of a server, and what is done with its connections.
class WEFT_API door {
 public:
  door() = default;
  virtual ~door();
  door(const door&) = delete;
  door& operator=(const door&) = delete;

  virtual void accept_until_closed() = 0;  // the body of the acceptor's task
  virtual void accept_waiting() = 0;  // those that wait already, as far as there are places; called by the owner
  virtual void close() noexcept = 0;

  task_ref acceptor;
};

}  // namespace weft::inline v1::net::detail
