#include "io/roster.hpp"

#include <utility>
#include <vector>

namespace weft::inline v1::net::detail {

void roster::enter(entry& e) noexcept {
  base::lock_guard guard(lock_);
  e.is_present = true;
  e.next = first_;
  if (first_ != nullptr) first_->previous = &e;
  first_ = &e;
  ++connections_;
}

void roster::begins(entry& e, task_ref by) noexcept {
  base::lock_guard guard(lock_);
  e.task = std::move(by);
}

void roster::leave(entry& e) noexcept {
  lock_.acquire();
  (e.previous == nullptr ? first_ : e.previous->next) = e.next;
  if (e.next != nullptr) e.next->previous = e.previous;
  --connections_;
  if (counts_ends_) ++(e.was_cut_short ? cut_short_ : finished_);
  release_and_tell();
}

void roster::acceptor_comes() noexcept {
  base::lock_guard guard(lock_);
  ++acceptors_;
}

void roster::acceptor_leaves() noexcept {
  lock_.acquire();
  --acceptors_;
  release_and_tell();
}

// The server waits for the end of the task that calls this, so the event is still there after the release.
void roster::release_and_tell() noexcept {
  const bool nobody_left = is_closed_ && connections_ == 0 && acceptors_ == 0;
  lock_.release();
  if (nobody_left) all_gone_.set();
}

void roster::count_ends() noexcept {
  base::lock_guard guard(lock_);
  counts_ends_ = true;
}

void roster::close() noexcept {
  lock_.acquire();
  is_closed_ = true;
  release_and_tell();
}

std::size_t roster::connections() noexcept {
  base::lock_guard guard(lock_);
  return connections_;
}

drain_report roster::report() {
  struct present {
    task_ref task;
    endpoint peer;
  };
  std::vector<present> left;
  drain_report r;
  for (std::size_t enough = 0;;) {
    left.reserve(enough);  // without the lock
    base::lock_guard guard(lock_);
    enough = connections_;
    if (enough > left.capacity()) continue;
    for (const entry* e = first_; e != nullptr; e = e->next) left.push_back({e->task, e->peer});
    r.finished = finished_;
    r.cancelled = cut_short_;
    break;
  }
  for (const present& p : left) {
    survivor s{.peer = p.peer};
    if (p.task) s.task = p.task.status();
    if (s.task.state == task_state::ended)
      ++r.cancelled;  // a moment ago
    else
      r.survivors.push_back(std::move(s));
  }
  return r;
}

}  // namespace weft::inline v1::net::detail
