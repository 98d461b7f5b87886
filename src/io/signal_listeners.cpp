#include "io/signal_listeners.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <bit>
#include <cerrno>

namespace weft::inline v1::io {

// Signals belong to the process, so there is one table, and its calls do not go through the table of a runtime.
class signal_table {
 public:
  [[nodiscard]] signal_listener* add(std::uint64_t wanted, int bell, std::error_code& why);
  void remove(signal_listener& l, int bell) noexcept;

 private:
  static constexpr int most = 64;  // signals are numbered from 1

  static void on_signal(int number);
  static void before_fork() { the_table.lock_.acquire(); }
  static void in_parent() { the_table.lock_.release(); }
  static void in_child();

  [[nodiscard]] signal_listener& unused_listener();
  [[nodiscard]] bool install(int number, std::error_code& why) noexcept;
  void uninstall(int number) noexcept;
  void take_off(signal_listener& l, std::uint64_t installed) noexcept;
  void tell_all(int number) noexcept;

  static signal_table the_table;
  friend class signal_listener;

  base::lock lock_;
  unsigned listeners_of_[most + 1] = {};  // under lock_
  struct sigaction before_[most + 1] = {};  // under lock_: who handled the signal before
  base::atomic<signal_listener*> first_{nullptr};
  base::atomic<int> handlers_running_{0};
  base::atomic<pid_t> process_{0};  // whose listeners these are
};

constinit signal_table signal_table::the_table;

namespace {

constexpr std::uint64_t bit_of(int number) noexcept { return std::uint64_t{1} << (number - 1); }
int lowest_in(std::uint64_t bits) noexcept { return std::countr_zero(bits) + 1; }

template <class F>
void for_each_signal(std::uint64_t bits, F f) {
  for (; bits != 0; bits &= bits - 1) f(lowest_in(bits));
}

// A handler that returns from one of these would only cause it again.
bool can_be_listened_for(int number) noexcept {
  switch (number) {
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGSYS: return false;
    default: return number >= 1 && number <= 64;
  }
}

}  // namespace

// ---- the handler ----------------------------------------------------------------------------------------------------

// Runs on any thread, at any time, so it takes no lock and allocates nothing.
void signal_table::on_signal(int number) {
  const int error_before = errno;
  // seq_cst, as in take_off(): either that sees this handler and waits for it, or this handler sees what that did.
  the_table.handlers_running_.fetch_add(1, base::seq_cst);
  // A child that was made by vfork() shares this memory, but its signals are not the parent's.
  if (the_table.process_.load(base::relaxed) == ::getpid()) the_table.tell_all(number);
  the_table.handlers_running_.fetch_sub(1, base::release);
  errno = error_before;
}

void signal_table::tell_all(int number) noexcept {
  for (signal_listener* l = first_.load(base::acquire); l != nullptr; l = l->next_) l->tell(number);
}

void signal_listener::tell(int number) noexcept {
  const std::uint64_t bit = bit_of(number);
  if ((wanted_.load(base::seq_cst) & bit) == 0) return;
  if ((come_.fetch_or(bit, base::acq_rel) & bit) != 0) return;  // merged with one that was not received yet
  const std::uint64_t one = 1;
  (void)!::write(bell_.load(base::relaxed), &one, sizeof one);  // io.S1: after the bit
}

int signal_listener::take() noexcept {
  std::uint64_t seen = come_.load(base::acquire);
  // The weak form may fail without a reason, and the handler may set bits meanwhile.
  while (!come_.compare_exchange_weak(seen, seen & (seen - 1), base::acq_rel, base::acquire)) {}
  return lowest_in(seen);
}

std::ptrdiff_t signal_listener::receive(const kernel_calls& calls, int bell) noexcept {
  base::lock_guard guard(lock_);
  if (bell_.load(base::relaxed) != bell) return -ECANCELED;
  std::uint64_t one = 0;
  const std::ptrdiff_t n = outcome_of(calls.read(bell, &one, sizeof one));
  return n < 0 ? n : take();
}

// ---- coming and going -----------------------------------------------------------------------------------------------

signal_listener* signal_listener::add(std::span<const int> numbers, int bell, std::error_code& why) {
  std::uint64_t wanted = 0;
  for (const int n : numbers) {
    if (!can_be_listened_for(n)) {
      why = std::make_error_code(std::errc::invalid_argument);
      return nullptr;
    }
    wanted |= bit_of(n);
  }
  return signal_table::the_table.add(wanted, bell, why);
}

void signal_listener::remove(int bell) noexcept { signal_table::the_table.remove(*this, bell); }

// Called with the lock.
signal_listener& signal_table::unused_listener() {
  for (signal_listener* l = first_.load(base::relaxed); l != nullptr; l = l->next_)
    if (!l->is_used_) return *l;
  auto* l = new signal_listener;
  l->next_ = first_.load(base::relaxed);
  first_.store(l, base::release);  // pairs with the acquire in tell_all()
  return *l;
}

signal_listener* signal_table::add(std::uint64_t wanted, int bell, std::error_code& why) {
  static const int watches_forks = ::pthread_atfork(&before_fork, &in_parent, &in_child);
  (void)watches_forks;
  why.clear();
  base::lock_guard guard(lock_);
  process_.store(::getpid(), base::relaxed);
  signal_listener& l = unused_listener();
  l.come_.store(0, base::relaxed);
  {
    base::lock_guard receivers(l.lock_);
    l.bell_.store(bell, base::relaxed);
  }
  // Before the handlers, so that no signal that they get is lost. Publishes the bell.
  l.wanted_.store(wanted, base::seq_cst);
  std::uint64_t installed = 0;
  for_each_signal(wanted, [&](int number) {
    if (!why && install(number, why)) installed |= bit_of(number);
  });
  l.is_used_ = true;
  if (!why) return &l;
  take_off(l, installed);
  return nullptr;
}

void signal_table::remove(signal_listener& l, int bell) noexcept {
  base::lock_guard guard(lock_);
  if (l.bell_.load(base::relaxed) != bell) return;  // somebody else has closed, and the listener has a new owner
  take_off(l, l.wanted_.load(base::relaxed));
}

// Called with the lock. `installed` are the signals for which this listener counts.
void signal_table::take_off(signal_listener& l, std::uint64_t installed) noexcept {
  for_each_signal(installed, [&](int number) { uninstall(number); });
  l.wanted_.store(0, base::seq_cst);
  while (handlers_running_.load(base::seq_cst) != 0) ::sched_yield();  // io.S2
  base::lock_guard receivers(l.lock_);
  l.bell_.store(-1, base::relaxed);
  l.is_used_ = false;
}

// SA_ONSTACK, because the stack of a task is small, and its thread has one for signals. SA_RESTART, because a program that
// listens does not expect its system calls to fail with EINTR.
bool signal_table::install(int number, std::error_code& why) noexcept {
  if (listeners_of_[number]++ != 0) return true;
  struct sigaction ours = {};
  ours.sa_handler = &on_signal;
  ours.sa_flags = SA_RESTART | SA_ONSTACK;
  ::sigfillset(&ours.sa_mask);  // handlers do not nest
  if (::sigaction(number, &ours, &before_[number]) == 0) return true;
  why = {errno, std::generic_category()};
  --listeners_of_[number];
  return false;
}

void signal_table::uninstall(int number) noexcept {
  if (--listeners_of_[number] != 0) return;
  struct sigaction now = {};
  if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler == &on_signal)
    ::sigaction(number, &before_[number], nullptr);
}

// The child of a fork has one thread and no listeners.
void signal_table::in_child() {
  for (int number = 1; number <= most; ++number) {
    if (the_table.listeners_of_[number] == 0) continue;
    the_table.listeners_of_[number] = 1;
    the_table.uninstall(number);
  }
  for (signal_listener* l = the_table.first_.load(base::relaxed); l != nullptr; l = l->next_)
    l->wanted_.store(0, base::relaxed);
  the_table.handlers_running_.store(0, base::relaxed);
  the_table.lock_.release();
}

}  // namespace weft::inline v1::io
