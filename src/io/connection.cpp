#include <weft/net/connection.hpp>

#include <utility>

#include "io/roster.hpp"
#include <weft/this_task.hpp>

namespace weft::inline v1::net::detail {

void roster_deleter::operator()(roster* r) const noexcept { delete r; }

connection::connection(roster& in) : in_(&in), entry_(std::make_unique<roster_entry>()) {}
connection::connection(connection&& other) noexcept = default;

// The place comes last: whoever gets it must not find more connections than are allowed.
connection::~connection() {
  if (entry_ == nullptr) return;
  const bool had_place = entry_->has_place;
  if (entry_->is_present) in_->leave(*entry_);
  if (had_place) in_->room().release();
}

void connection::wait_for_place(std::source_location where) {
  in_->room().acquire(1, where);
  entry_->has_place = true;
}

bool connection::try_to_take_place() noexcept { return entry_->has_place = in_->room().try_acquire(); }

void connection::enter(const socket_stream& s) noexcept {
  try {
    entry_->peer = s.remote_endpoint();
  } catch (...) {  // the client has gone already, as the handler will see
  }
  in_->enter(*entry_);
}

void connection::task_begins() { in_->begins(*entry_, this_task::ref()); }
void connection::was_cut_short() noexcept { entry_->was_cut_short = true; }

acceptor_presence::acceptor_presence(roster& in) noexcept : in_(&in) { in.acceptor_comes(); }
acceptor_presence::acceptor_presence(acceptor_presence&& other) noexcept : in_(std::exchange(other.in_, nullptr)) {}
acceptor_presence::~acceptor_presence() {
  if (in_ != nullptr) in_->acceptor_leaves();
}

door::~door() = default;

}  // namespace weft::inline v1::net::detail
