#include "support/held_monitor.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "base/atomic.hpp"
#include "support/monitor_state.hpp"
#include "support/process.hpp"
#include "support/until.hpp"

namespace support {
namespace {

enum class state { free, asked, held, told_to_go };
weft::base::atomic<state> monitor_is{state::free};
const weft::sched::scheduler* whose = nullptr;

// It is stopped only where it sleeps. Elsewhere it may hold a lock that others need.
void hold(int) {
  const int before = errno;
  if (monitor_sleeps(*whose)) {
    monitor_is.store(state::held);
    while (monitor_is.load() == state::held) ::usleep(200);
  }
  monitor_is.store(state::free);
  errno = before;
}

}  // namespace

held_monitor::held_monitor(const weft::sched::scheduler& of) {
  whose = &of;
  struct sigaction action{};
  action.sa_handler = &hold;
  ::sigaction(SIGUSR2, &action, nullptr);
  int thread = 0;
  until([&] { return (thread = thread_named("weft-monitor")) != 0; });  // it may just be starting
  do {
    monitor_is.store(state::asked);
    ::tgkill(::getpid(), thread, SIGUSR2);
    until([] { return monitor_is.load() != state::asked; });
  } while (monitor_is.load() != state::held);
}

held_monitor::~held_monitor() {
  monitor_is.store(state::told_to_go);
  until([] { return monitor_is.load() == state::free; });
}

}  // namespace support
