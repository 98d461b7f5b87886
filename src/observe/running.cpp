#include "observe/running.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "base/clock.hpp"
#include "base/lock.hpp"
#include "context/region.hpp"
#include "observe/memory.hpp"
#include "observe/stack_reader.hpp"

namespace weft::inline v1::observe {
namespace {

constexpr int the_signal = SIGURG;

// The question that is open, if one is. The number of the question in the upper bits, what has become of it in the
// lower.
enum class stage : std::uint32_t { idle, asked, answering, answered };
constexpr std::uint32_t one_question = 4;

struct answer_room {
  base::atomic<std::uint32_t> state{0};
  // Written by the handler, between `answering` and `answered`.
  registers at;
  std::uintptr_t address = 0;
  const void* memory = nullptr;
  std::size_t size = 0;
  std::byte bytes[stack_reader::most_bytes];
};

base::lock asking;  // one question at a time
answer_room* room = nullptr;  // made with the first question and never given back: a handler may come at any time
struct sigaction before_us{};  // written once, before our handler is there

void answer(answer_room& r, const void* context) noexcept {
  r.at = from_signal(context);
  r.address = 0;
  r.memory = nullptr;
  r.size = 0;
  const std::uintptr_t sp = r.at.sp();
  const context::region::found on = context::region::find(sp);
  if (on.which == nullptr || on.in_guard) return;
  const auto begin = std::max(sp - machine::red_zone, reinterpret_cast<std::uintptr_t>(on.which->base));
  const auto end = reinterpret_cast<std::uintptr_t>(on.which->base + on.which->size);
  const std::size_t n = std::min<std::size_t>(end - begin, sizeof r.bytes);
  if (!try_copy(r.bytes, reinterpret_cast<const void*>(begin), n)) return;
  r.memory = on.which;
  r.address = begin;
  r.size = n;
}

bool is_ours(const siginfo_t& info) noexcept {
  return info.si_code == SI_QUEUE && info.si_pid == ::getpid() && info.si_value.sival_ptr == room;
}

void on_signal(int number, siginfo_t* info, void* context) noexcept {
  const int before = errno;
  if (is_ours(*info)) {
    // The number of the question travels in the error field, because the value says that the signal is ours.
    const auto question = static_cast<std::uint32_t>(info->si_errno) * one_question;
    std::uint32_t expected = question | static_cast<std::uint32_t>(stage::asked);
    // Only an open question is answered (observe.R1). acquire pairs with the release of the question.
    if (room->state.compare_exchange_strong(expected, question | static_cast<std::uint32_t>(stage::answering),
                                            base::acquire, base::relaxed)) {
      answer(*room, context);
      // Publishes the answer; pairs with the acquire in wait_for_answer().
      room->state.store(question | static_cast<std::uint32_t>(stage::answered), base::release);
      base::futex_wake(&room->state);
    }
  } else if ((before_us.sa_flags & SA_SIGINFO) != 0) {
    before_us.sa_sigaction(number, info, context);
  } else if (before_us.sa_handler != SIG_DFL && before_us.sa_handler != SIG_IGN) {
    before_us.sa_handler(number);
  }
  errno = before;
}

// Once in a process (observe.R2). Under `asking`.
void install() noexcept {
  static bool is_installed = false;
  if (std::exchange(is_installed, true)) return;
  ::sigaction(the_signal, nullptr, &before_us);
  struct sigaction ours{};
  ours.sa_sigaction = on_signal;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;  // workers have an alternate stack (context/signal_stack.cpp)
  ::sigfillset(&ours.sa_mask);  // an answer that has begun is waited for without a limit: no other handler delays it
  ::sigaction(the_signal, &ours, nullptr);
}

bool send(int thread_id, std::uint32_t question) noexcept {
  siginfo_t info{};
  info.si_signo = the_signal;
  info.si_code = SI_QUEUE;
  info.si_errno = static_cast<int>(question);
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  info.si_value.sival_ptr = room;
  return ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), thread_id, the_signal, &info) == 0;
}

// Returns false if no answer has come in time. Then none will.
bool wait_for_answer(std::uint32_t question, base::time_ns patience) noexcept {
  const base::time_ns until = base::now() + patience;
  const std::uint32_t asked = question | static_cast<std::uint32_t>(stage::asked);
  const std::uint32_t answered = question | static_cast<std::uint32_t>(stage::answered);
  for (;;) {
    // acquire pairs with the release in on_signal().
    std::uint32_t now = room->state.load(base::acquire);
    if (now == answered) return true;
    // Once the handler has begun, it ends: it waits for nothing.
    if (now == asked && base::now() >= until && room->state.compare_exchange_strong(now, question, base::relaxed))
      return false;
    base::futex_wait(room->state, now, now == asked ? until : base::never_ns);
  }
}

}  // namespace

std::optional<interrupted> interrupt_and_copy(int thread_id, base::time_ns patience) {
  base::lock_guard guard(asking);
  if (room == nullptr) room = new answer_room;
  install();
  static std::uint32_t questions = 0;
  const std::uint32_t number = ++questions & 0x0fff'ffff;
  const std::uint32_t question = number * one_question;
  // release pairs with the acquire in on_signal(): the handler finds the room as it is now.
  room->state.store(question | static_cast<std::uint32_t>(stage::asked), base::release);
  if (!send(thread_id, number)) {
    room->state.store(question, base::relaxed);
    return std::nullopt;
  }
  if (!wait_for_answer(question, patience)) return std::nullopt;
  interrupted i{room->at, room->address, room->memory, {}};
  i.bytes.assign(room->bytes, room->bytes + room->size);
  return i;
}

// The state is the third word of /proc/self/task/N/stat. It stands behind the name in brackets, which may contain
// anything.
char kernel_state_of(int thread_id) noexcept {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread_id);
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[128];
  const ssize_t n = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (n <= 0) return 0;
  text[n] = '\0';
  const char* end_of_name = std::strrchr(text, ')');
  return end_of_name == nullptr || end_of_name[1] != ' ' ? '\0' : end_of_name[2];
}

}  // namespace weft::inline v1::observe
