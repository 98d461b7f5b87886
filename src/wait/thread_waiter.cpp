#include "wait/thread_waiter.hpp"

namespace weft::inline v1::waits {

// Commit, unlock, then sleep: a thread has no switch, so PARKED is true as soon as it is said.
outcome thread_wait(waitable& w, node& n) {
  w.prepare();
  for (;;) {
    if (w.try_complete()) return outcome::completed;
    thread_waiter self;
    w.lock();
    if (w.try_locked()) {
      w.unlock();
      w.settle();
      return outcome::completed;
    }
    const std::uint64_t word = self.word.begin_park(0);
    n.who = &self;
    n.ticket = task::state_word::ticket_of(word);
    if (!w.publish(n)) {
      self.word.abort_park();
      w.unlock();
      w.settle();
      return outcome::completed;
    }
    const bool parked = self.word.commit_park();
    w.unlock();
    if (parked) (void)self.sleep();
    const task::wake_reason why = task::reason_of(self.wake_value);
    if (why == task::wake_reason::data || why == task::wake_reason::signal) return outcome::completed;
    w.lock();
    w.unpublish(n);
    w.unlock();
  }
}

}  // namespace weft::inline v1::waits
