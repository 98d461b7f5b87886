// Dumps that the environment asks for: WEFT_DUMP_SIGNAL=QUIT, and WEFT_DUMP_IF_STUCK=30s.
//
// A runtime has a thread for this only if one of the two variables is set; otherwise nothing is spent on it. The
// handler of the signal wakes the threads and does nothing else: a dump allocates, and the signal may have interrupted
// malloc.
//
// observe.B1. Each signal makes each runtime dump, from the runtime's own thread here, one runtime after the other.
//                                                                                   test observe/a_signal_makes_a_dump_*
#include "sched/bystander.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/known_threads.hpp"
#include "base/lock.hpp"
#include "base/thread.hpp"
#include "observe/dump.hpp"
#include "sched/os_thread.hpp"
#include "sched/upcalls.hpp"

namespace weft::inline v1::observe {
namespace {

constinit base::lock printing;
constinit base::lock installing;
constinit base::atomic<std::uint32_t> requests{0};  // counts signals, and runtimes that end
constinit base::atomic<std::uint32_t> signals{0};
struct sigaction before_dump_signal[NSIG];  // by number; written once, before our handler is there
constinit bool has_ours[NSIG] = {};  // by number; under `installing`

// A write and nothing else: the thread that dumps may be the last one that still works.
void print(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
    if (n < 0 && errno != EINTR) return;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
}

void wake_all() noexcept {
  // release pairs with the acquire in run(): whoever sees the request sees why it was made.
  requests.fetch_add(1, base::release);
  base::futex_wake(&requests, std::numeric_limits<int>::max());
}

void on_dump_signal(int number, siginfo_t* info, void* context) noexcept {
  const int before = errno;
  signals.fetch_add(1, base::relaxed);
  wake_all();
  const struct sigaction& further = before_dump_signal[number];
  if ((further.sa_flags & SA_SIGINFO) != 0)
    further.sa_sigaction(number, info, context);
  else if (further.sa_handler != SIG_DFL && further.sa_handler != SIG_IGN)
    further.sa_handler(number);
  errno = before;
}

// "QUIT", "SIGQUIT" or "3". 0 if there is no such signal.
int signal_of(std::string_view text) noexcept {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size()) return number > 0 && number < NSIG ? number : 0;
  if (text.substr(0, 3) == "SIG") text.remove_prefix(3);
  for (number = 1; number < 32; ++number)
    if (const char* name = ::sigabbrev_np(number); name != nullptr && text == name) return number;
  return 0;
}

// Once for each signal, for the reason of observe.R2: a handler that was set after ours may call ours.
bool install_dump_signal(const char* variable) noexcept {
  const int wanted = signal_of(variable);
  const base::lock_guard guard(installing);
  if (has_ours[wanted]) return true;
  if (wanted != 0 && ::sigaction(wanted, nullptr, &before_dump_signal[wanted]) == 0) {
    struct sigaction ours{};
    ours.sa_sigaction = on_dump_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    ::sigemptyset(&ours.sa_mask);
    has_ours[wanted] = ::sigaction(wanted, &ours, nullptr) == 0;
    if (has_ours[wanted]) return true;
  }
  std::fprintf(stderr, "weft: WEFT_DUMP_SIGNAL=%s is no signal that can be caught; try QUIT or USR1\n", variable);
  return false;
}

// "30s", "500ms", "2min", or a number of seconds. never_ns if it is none of them.
base::time_ns duration_of(std::string_view text) noexcept {
  std::int64_t n = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, n);
  const std::string_view unit(end, static_cast<std::size_t>(last - end));
  const base::time_ns one = unit == "ms"                   ? 1'000'000
                            : unit == "s" || unit.empty()  ? 1'000'000'000
                            : unit == "min" || unit == "m" ? 60'000'000'000
                                                           : 0;
  return error != std::errc{} || n <= 0 || n > 1'000'000 || one == 0 ? base::never_ns : n * one;
}

base::time_ns stuck_limit() noexcept {
  const char* text = std::getenv("WEFT_DUMP_IF_STUCK");
  if (text == nullptr || *text == '\0' || std::strcmp(text, "0") == 0) return base::never_ns;
  const base::time_ns limit = duration_of(text);
  if (limit == base::never_ns)
    std::fprintf(stderr, "weft: WEFT_DUMP_IF_STUCK=%s is no time such as 30s or 500ms; ignored\n", text);
  return limit;
}

class dumper final : public sched::bystander {
 public:
  dumper(sched::scheduler& of, bool by_signal, base::time_ns limit)
      : of_(of),
        by_signal_(by_signal),
        limit_(limit),
        thread_(std::make_unique<base::thread>([this] { run(); })) {}
  ~dumper() override {
    if (sched::fork_generation() != made_in_) {
      static_cast<void>(thread_.release());  // the thread is the parent's
      return;
    }
    ending_.store(true, base::relaxed);
    wake_all();
    thread_->join();
  }

 private:
  void run() noexcept {
    const base::own_thread ours;
    (void)::pthread_setname_np(::pthread_self(), "weft-dump");
    // Signals are for the threads of the program. This one may be busy with a dump.
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    std::uint32_t seen = requests_before_, signals_seen = signals_before_;
    while (!ending_.load(base::relaxed)) {
      const std::uint32_t now = requests.load(base::acquire);
      if (now == seen) {
        base::futex_wait(requests, now, limit_ == base::never_ns ? limit_ : base::now() + pause());
        if (limit_ != base::never_ns) look_if_stuck();
        continue;
      }
      seen = now;
      const std::uint32_t come = signals.load(base::relaxed);
      if (by_signal_ && come != signals_seen && !ending_.load(base::relaxed)) dump();
      signals_seen = come;
    }
  }
  [[nodiscard]] base::time_ns pause() const noexcept {
    return std::min<base::time_ns>(std::max<base::time_ns>(limit_ / 8, 1'000'000), 1'000'000'000);
  }

  // No task was dispatched, and tasks live.
  void look_if_stuck() noexcept {
    std::uint64_t dispatched = 0, spawned = of_.ending().spawned_from_outside(), finished = 0;
    for (const sched::worker* w : of_.workers()) {
      dispatched += w->counters().dispatched.get();
      finished += w->counters().finished.get();
      spawned += w->counters().spawned.get();
    }
    const base::time_ns now = base::now();
    if (dispatched != dispatched_ || spawned == finished) {
      dispatched_ = dispatched;
      since_ = now;
      told_ = false;
    } else if (!told_ && now - since_ >= limit_) {
      told_ = true;  // once, until something moves again
      dump(std::chrono::milliseconds((now - since_) / 1'000'000));
    }
  }

  // If the reason is that nothing was dispatched, for how long. There may be no memory left: then that is said without
  // any.
  void dump(std::chrono::milliseconds still_for = {}) noexcept {
    base::lock_guard guard(printing);
    try {
      if (still_for.count() != 0) print("weft: no task was dispatched for " + duration_text(still_for) + "\n");
      print(dump_text(of_, dump_form::groups));
    } catch (const std::exception& e) {
      print("weft: there can be no dump: ");
      print(e.what());
      print("\n");
    } catch (...) {
      print("weft: there can be no dump\n");
    }
  }

  sched::scheduler& of_;
  const bool by_signal_;
  const base::time_ns limit_;
  const std::uint32_t made_in_ = sched::fork_generation();
  const std::uint32_t signals_before_ = signals.load(base::relaxed);
  const std::uint32_t requests_before_ = requests.load(base::acquire);
  base::atomic<bool> ending_{false};
  std::uint64_t dispatched_ = 0;
  base::time_ns since_ = base::now();
  bool told_ = false;
  std::unique_ptr<base::thread> thread_;  // last: it uses everything above
};

}  // namespace
}  // namespace weft::inline v1::observe

namespace weft::inline v1::sched {

std::unique_ptr<bystander> make_bystander(scheduler& of) {
  const char* by = std::getenv("WEFT_DUMP_SIGNAL");
  const bool by_signal = by != nullptr && *by != '\0' && observe::install_dump_signal(by);
  const base::time_ns limit = observe::stuck_limit();
  if (!by_signal && limit == base::never_ns) return nullptr;
  return std::make_unique<observe::dumper>(of, by_signal, limit);
}

}  // namespace weft::inline v1::sched
