#include "wait/thread_waiter.hpp"

#include "wait/fiber_wait.hpp"

namespace weft::inline v1::waits {

outcome thread_wait(waitable& w, node& n) {
  thread_waiter self;
  w.prepare();
  wait<waitable> waiting(w, n, false);
  if (drive(waiting, w, self).how == step::settle) w.settle();
  return outcome::completed;
}

}  // namespace weft::inline v1::waits
