#include "context/overflow.hpp"

#include <dlfcn.h>
#include <signal.h>
#include <ucontext.h>
#include <unwind.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/atomic.hpp"
#include "context/region.hpp"
#include "context/signal_text.hpp"

namespace weft::inline v1::context {
namespace {

constinit base::atomic<describe_function> describer{nullptr};
constinit base::atomic<advise_function> adviser{nullptr};

// The handlers of the two signals before ours. Written once, before our handler is installed.
struct sigaction previous_segv, previous_bus;

struct place {
  std::uintptr_t pc, sp;
};

#if defined(__x86_64__)
place place_of(const ucontext_t& c) noexcept {
  return {static_cast<std::uintptr_t>(c.uc_mcontext.gregs[REG_RIP]),
          static_cast<std::uintptr_t>(c.uc_mcontext.gregs[REG_RSP])};
}
#elif defined(__aarch64__)
place place_of(const ucontext_t& c) noexcept { return {c.uc_mcontext.pc, c.uc_mcontext.sp}; }
#else
place place_of(const ucontext_t&) noexcept { return {0, 0}; }
#endif

// The frames from the faulting one outward. The frames of the handler itself come first and are skipped.
struct frames {
  static constexpr int most = 6;
  std::uintptr_t fault_pc;
  std::uintptr_t pc[most];
  int count = 0;
  bool reached = false;

  static _Unwind_Reason_Code visit(_Unwind_Context* c, void* self) noexcept {
    auto& f = *static_cast<frames*>(self);
    const std::uintptr_t ip = _Unwind_GetIP(c);
    if (ip == 0) return _URC_END_OF_STACK;  // the return address of a task's first frame
    if (ip == f.fault_pc) {
      f.reached = true;
    } else if (f.reached && f.count < most) {
      f.pc[f.count++] = ip - 1;  // inside the call, not behind it
    }
    return f.count == most ? _URC_END_OF_STACK : _URC_NO_REASON;
  }
};

void say_place(signal_text& text, std::uintptr_t pc) noexcept {
  text << reinterpret_cast<const void*>(pc);
  Dl_info where{};
  if (::dladdr(reinterpret_cast<void*>(pc), &where) == 0) return;
  if (where.dli_sname != nullptr)
    text << " " << where.dli_sname << "+"
         << reinterpret_cast<const void*>(pc - reinterpret_cast<std::uintptr_t>(where.dli_saddr));
  // The arguments of `addr2line -fCe module offset`, which alone knows the names of functions that are not exported.
  if (where.dli_fname != nullptr)
    text << " (" << where.dli_fname << " "
         << reinterpret_cast<const void*>(pc - reinterpret_cast<std::uintptr_t>(where.dli_fbase)) << ")";
}

[[noreturn]] void report(const stack& s, const void* address, const place& at) noexcept {
  char who[160];
  describe_owner(s, who, sizeof who);
  signal_text text;
  text << "weft: stack overflow in task " << who << ": its stack of " << (s.size >> 10) << " KiB is used up at address "
       << address << "\n  at ";
  say_place(text, at.pc);
  const auto sp = reinterpret_cast<const std::byte*>(at.sp);
  if (sp >= s.base + s.size || sp < s.base - s.size)
    text << "\n  (or a stray pointer: the stack pointer, " << static_cast<const void*>(sp) << ", is not on that stack)";
  text << "\n";
  text.write_to(STDERR_FILENO);  // now, because what follows could fail

  frames f{};
  f.fault_pc = at.pc;
  _Unwind_Backtrace(frames::visit, &f);
  for (int i = 0; i < f.count; ++i) {
    text << "  called from ";
    say_place(text, f.pc[i]);
    text << "\n";
  }
  text.write_to(STDERR_FILENO);
  text << "  give the task a larger stack";
  char how[160];
  if (const advise_function advise = adviser.load(base::acquire)) {
    how[advise(s, s.size * 2, how, sizeof how - 1)] = 0;
    text << ": " << how;
  }
  text << ", or recurse less and keep large arrays off the stack\n";
  text.write_to(STDERR_FILENO);
  ::signal(SIGSEGV, SIG_DFL);
  ::signal(SIGBUS, SIG_DFL);
  std::abort();
}

void pass_on(int signal, siginfo_t* info, void* context) noexcept {
  const struct sigaction& before = signal == SIGSEGV ? previous_segv : previous_bus;
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else if (info->si_code > 0) {
    ::sigaction(signal, &before, nullptr);  // the instruction faults again, and the kernel handles it
  } else if (before.sa_handler == SIG_DFL) {
    ::sigaction(signal, &before, nullptr);  // sent by kill or raise: sent again, for after our return
    ::raise(signal);
  }
}

void on_fault(int signal, siginfo_t* info, void* context) noexcept {
  const int before = errno;
  if (info->si_code > 0) {  // a fault, not somebody's kill
    const region::found f = region::find(reinterpret_cast<std::uintptr_t>(info->si_addr));
    if (f.which != nullptr && f.in_guard) report(*f.which, info->si_addr, place_of(*static_cast<ucontext_t*>(context)));
  }
  pass_on(signal, info, context);
  errno = before;
}

void install(int signal, struct sigaction& before) noexcept {
  ::sigaction(signal, nullptr, &before);
  struct sigaction ours{};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&ours.sa_mask);
  ::sigaction(signal, &ours, nullptr);
}

}  // namespace

void install_overflow_reporter(describe_function describe, advise_function advise) noexcept {
  describer.store(describe, base::release);
  adviser.store(advise, base::release);
  static base::atomic<bool> installed{false};
  if (installed.exchange(true, base::acq_rel)) return;
  // The unwinder allocates on its first use. That must not happen in a handler, so it is used once here.
  frames warm_up{};
  _Unwind_Backtrace(frames::visit, &warm_up);
  install(SIGSEGV, previous_segv);
  install(SIGBUS, previous_bus);
}

void describe_owner(const stack& s, char* buffer, std::size_t size) noexcept {
  const describe_function describe = describer.load(base::acquire);
  std::size_t length = describe == nullptr || s.owner == nullptr ? 0 : describe(s, buffer, size - 1);
  if (length == 0) {
    constexpr char nobody[] = "(unknown)";
    length = sizeof nobody - 1;
    std::memcpy(buffer, nobody, length);
  }
  buffer[length < size ? length : size - 1] = 0;
}

}  // namespace weft::inline v1::context
