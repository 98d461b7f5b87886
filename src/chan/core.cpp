#include "chan/core.hpp"

#include "base/log.hpp"
#include "wait/fiber_wait.hpp"

namespace weft::inline v1::chan {

using task::wake_reason;

static_assert(sizeof(core) == 2 * base::cache_line, "the first line is what a rendezvous touches");

core::core(const element& e, kind k, std::size_t capacity, bool lock_free) : element_(e), capacity_(capacity) {
  switch (k) {
    case kind::unlimited: buffer_ = make_unlimited_buffer(e); return;
    case kind::conflated: buffer_ = make_conflated_buffer(e); return;
    case kind::bounded: break;
  }
  if (capacity == 0) return;
  if (e.small && lock_free) {
    auto ring = std::make_unique<fast_ring>(capacity, e.two_words);
    fast_ = ring.get();
    buffer_ = std::move(ring);
  } else {
    buffer_ = make_bounded_buffer(e, capacity);
  }
}

core::~core() {
  if (buffer_ == nullptr) delete fast_;  // close() has taken it out of buffer_, or there is none
}

// ---- exchange ------------------------------------------------------------------------------------------------------

entry* core::claim_other(side s, const task::parkable& self) noexcept {
  waiter_list& list = waiters_[index(s)];
  for (waits::node* n = list.first(); n != nullptr;) {
    waits::node* candidate = std::exchange(n, n->next);
    if (candidate->who == &self) continue;  // it is PARKING, so it could not be claimed
    remove_waiter(s, *candidate);
    if (waits::claim(*candidate, wake_reason::data)) return static_cast<entry*>(candidate);
  }
  return nullptr;
}

bool core::push(void* slot) {
  if (!buffer_->push(slot)) return false;
  ++buffered_;
  return true;
}

attempt core::pop(void* slot, const task::parkable* self) {
  if (!buffer_->pop(slot)) return {};
  ++taken_;
  if (waiters_[index(side::writer)].empty()) return {status::done};
  entry* sender = refill(self);
  note_waiters(side::writer);
  return {status::done, sender, true};
}

// There is room now, and the value of the first waiting sender goes into it. No sender that came later can take that
// room, because the fast path of senders stays closed until note_waiters().
entry* core::refill(const task::parkable* self) noexcept {
  while (entry* sender = self == nullptr ? claim_first(side::writer) : claim_other(side::writer, *self)) {
    try {
      if (buffer_->push(sender->slot)) {
        ++buffered_;
        return sender;
      }
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // The sender is told to try again and gets the exception itself. The room is for the next sender.
    }
    tell_to_retry(*sender);
  }
  return nullptr;
}

void core::tell_to_retry(entry& peer) noexcept {
  peer.set_result(status::retry);
  peer.who->wake_value = task::wake_value(wake_reason::none, 0);
  waits::resume(*peer.who);
}

// ---- close ---------------------------------------------------------------------------------------------------------

void core::claim_all(waiter_list& list, waits::node*& woken) noexcept {
  while (waits::node* n = list.first()) {
    list.remove_first(*n);
    if (!waits::claim(*n, wake_reason::data)) continue;
    static_cast<entry*>(n)->set_result(status::closed);
    n->next = woken;
    woken = n;
  }
}

void core::close(side by, std::exception_ptr why) noexcept {
  waits::node* woken = nullptr;
  std::unique_ptr<buffer> dropped;
  lock();
  if (why != nullptr && errors_[index(by)] == nullptr && !(by == side::writer ? is_closed() : is_abandoned()))
    errors_[index(by)] = std::move(why);
  if (!is_closed()) {
    closed_.store(true, base::relaxed);
    if (fast_ != nullptr) fast_->close();
    // Receivers wait only while there is nothing for them (chan.C1), so all of them get `closed`. Senders that wait
    // were admitted before the close and stay on their list (chan.C3).
    claim_waiters(side::reader, woken);
    note_waiters(side::reader);
    claim_all(watchers_[index(side::reader)], woken);
  }
  if (by == side::reader && !is_abandoned()) {
    abandoned_.store(true, base::relaxed);
    (void)expect_wait(side::writer);  // never taken back: from now on every receiver takes the lock, and gets `closed`
    claim_waiters(side::writer, woken);
    claim_all(watchers_[index(side::writer)], woken);
    dropped = std::move(buffer_);
    if (fast_ != nullptr) {
      [[maybe_unused]] auto* still_used = dropped.release();  // by others, until the destructor deletes it
    }
  }
  unlock();
  WEFT_LOG(channel, "channel %p is closed by its %s", static_cast<void*>(this),
           by == side::writer ? "writer" : "reader");
  while (woken != nullptr) {
    waits::node* next = woken->next;  // read now: the node lies in its waiter's frame, which may end once it is resumed
    waits::resume(*woken->who);
    woken = next;
  }
}

bool core::drop_end(side s) noexcept {
  // acq_rel: what was done through the other ends of this side happens before the close by the last one.
  if (ends_[index(s)].fetch_sub(1, base::acq_rel) != 1) return false;
  close(s, nullptr);
  // acq_rel: the close by the other side happens before the delete.
  return sides_.fetch_sub(1, base::acq_rel) == 1;
}

// ---- questions -----------------------------------------------------------------------------------------------------

bool core::is_drained() noexcept {
  base::lock_guard guard(lock_);
  if (!is_closed()) return false;
  return (buffer_ == nullptr || buffer_->size() == 0) && waiters_[index(side::writer)].empty();
}

std::exception_ptr core::error_of(side by) noexcept {
  base::lock_guard guard(lock_);
  return errors_[index(by)];
}

counts core::count() noexcept {
  base::lock_guard guard(lock_);
  counts c;
  // `received` is read before `sent`, so that nothing seems to be received that was not sent.
  c.received = handed_over_ + (fast_ != nullptr ? fast_->received() : taken_);
  c.sent = handed_over_ + (fast_ != nullptr ? fast_->sent() : buffered_);
  c.size = buffer_ != nullptr ? buffer_->size() : 0;
  c.waiting_senders = waiting_[index(side::writer)];
  c.waiting_receivers = waiting_[index(side::reader)];
  return c;
}

std::size_t core::size() noexcept {
  if (fast_ != nullptr) return is_abandoned() ? 0 : fast_->size();
  if (is_rendezvous()) return 0;
  base::lock_guard guard(lock_);
  return buffer_ != nullptr ? buffer_->size() : 0;
}

}  // namespace weft::inline v1::chan
