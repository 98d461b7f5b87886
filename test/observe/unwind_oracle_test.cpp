// ctest: notsan
// The unwinder against libgcc's, pc by pc, over every kind of frame and every variant of the compiler (frames/frames.cpp).
#include <gtest/gtest.h>
#include <ucontext.h>
#include <unwind.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "observe/eh_frame.hpp"
#include "observe/frames/frames.hpp"
#include "observe/stacks.hpp"
#include "support/usual.hpp"

extern "C" void weft_v1_context_start() noexcept;  // switch_<arch>.S

#if defined(__x86_64__)

// A function without tables, as a just-in-time compiler would make it, but with a frame pointer.
extern "C" void weft_test_without_tables(void (*f)(void*), void* data);
extern "C" const char weft_test_without_tables_end[];
asm(R"(
        .text
        .p2align 4
        .globl  weft_test_without_tables
        .type   weft_test_without_tables, @function
weft_test_without_tables:
        pushq   %rbp
        movq    %rsp, %rbp
        movq    %rdi, %rax
        movq    %rsi, %rdi
        callq   *%rax
        popq    %rbp
        ret
        .size   weft_test_without_tables, . - weft_test_without_tables
        .globl  weft_test_without_tables_end
weft_test_without_tables_end:
)");

// Calls a function as if the parked fiber with this stack pointer had called it: the unwinder of libgcc, which knows only the
// stack that it runs on, then goes on with the fiber's.
extern "C" void weft_test_call_from(const void* sp, void (*f)(void*), void* data);
extern "C" const char weft_test_call_from_end[];
asm(R"(
        .text
        .p2align 4
        .globl  weft_test_call_from
        .type   weft_test_call_from, @function
weft_test_call_from:
        .cfi_startproc
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbx, 0
        movq    %rdi, %rbx
        movq    %rdx, %rdi
        .cfi_remember_state
        .cfi_def_cfa rbx, 64
        .cfi_offset rip, -8
        .cfi_offset rbp, -16
        .cfi_offset rbx, -24
        .cfi_offset r12, -32
        .cfi_offset r13, -40
        .cfi_offset r14, -48
        .cfi_offset r15, -56
        callq   *%rsi
        nop
        .cfi_restore_state
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbx
        ret
        .cfi_endproc
        .size   weft_test_call_from, . - weft_test_call_from
        .globl  weft_test_call_from_end
weft_test_call_from_end:
)");

#endif

namespace frames {
namespace {
const variant* first = nullptr;
}
void add(variant& v) {
  v.next = first;
  first = &v;
}
}  // namespace frames

namespace {

using namespace support::usual;
using namespace weft::observe;
using weft_test::copied_stack;
using weft_test::frames_of;

// What libgcc finds from the frame of the caller on.
[[gnu::noinline]] std::vector<frame> frames_by_libgcc() {
  std::vector<frame> found;
  _Unwind_Backtrace(
      [](_Unwind_Context* c, void* to) {
        int is_exact = 0;
        const std::uintptr_t pc = _Unwind_GetIPInfo(c, &is_exact);
        auto& all = *static_cast<std::vector<frame>*>(to);
        if (pc != 0) all.push_back({pc, false, is_exact != 0});  // 0 announces the end
        return all.size() < 1000 ? _URC_NO_REASON : _URC_NORMAL_STOP;
      },
      &found);
  found.erase(found.begin());  // this function
  return found;
}

std::string text_of(const std::vector<frame>& frames) {
  std::string text;
  for (const frame& f : frames) {
    char line[64];
    std::snprintf(line, sizeof line, "%#zx%s%s ", static_cast<std::size_t>(f.pc), f.is_exact ? "!" : "",
                  f.is_guess ? "?" : "");
    text += line;
  }
  return text;
}

void expect_same(std::vector<frame> ours, std::vector<frame> theirs) {
  if (theirs.size() > most_frames) theirs.resize(most_frames);
  EXPECT_EQ(text_of(ours), text_of(theirs));
}

// Both unwind the stack that they run on. They stand at different places of this function, so its own pc is left out.
struct thread_stack {
  std::uintptr_t end = weft_test::end_of_thread_stack();
  std::size_t compared = 0;
  std::size_t shallowest = 1000;
};
[[gnu::noinline]] void compare_here(void* data) {
  auto& on = *static_cast<thread_stack*>(data);
  ucontext_t here;
  getcontext(&here);
  registers start = from_signal(&here);
  start.is_exact = false;  // where a call returns to
  auto ours = frames_of(copied_stack(start.sp(), on.end), start);
  auto theirs = frames_by_libgcc();
  ASSERT_FALSE(ours.empty());
  ours.erase(ours.begin());
  theirs.erase(theirs.begin());
  expect_same(ours, theirs);
  ++on.compared;
  on.shallowest = std::min(on.shallowest, ours.size());
}

// req: OB-1
TEST(UnwindOracle, the_frames_of_a_thread_are_those_that_libgcc_finds) {
  support::watchdog guard(60s, "unwinding");
  std::size_t variants = 0;
  std::thread([&] {  // not below the frames of GoogleTest, of which there are many
    thread_stack on;
    for (const auto* v = frames::first; v != nullptr; v = v->next, ++variants) {
      for (const auto& s : v->scenarios) {
        SCOPED_TRACE(std::string(v->name) + " " + s.name);
        s.run(&compare_here, &on);
      }
    }
    EXPECT_GE(on.shallowest, 4u) << "leaf, function, thread";
    EXPECT_GE(on.compared, variants * 18);
  })
      .join();
  EXPECT_GE(variants, 7u);
}

// req: OB-1
TEST(UnwindOracle, the_second_look_at_a_place_gives_the_same_from_the_cache) {
  thread_stack on;
  for (int i = 0; i < 3; ++i) frames::first->scenarios.front().run(&compare_here, &on);
  EXPECT_EQ(on.compared, 3u);
}

[[gnu::noinline]] std::size_t frames_below(int depth) {
  if (depth == 0) {
    ucontext_t here;
    getcontext(&here);
    const registers start = from_signal(&here);
    frame found[most_frames + 10];
    const copied_stack copy(start.sp(), weft_test::end_of_thread_stack());
    return unwind(copy.view(), start, found);
  }
  const std::size_t count = frames_below(depth - 1);
  asm volatile("");  // no tail call
  return count;
}
TEST(UnwindOracle, of_a_deep_stack_the_innermost_frames_are_found) { EXPECT_EQ(frames_below(300), most_frames); }

#if defined(__x86_64__)

[[gnu::noinline]] void look(void* data) {
  ucontext_t here;
  getcontext(&here);
  const registers start = from_signal(&here);
  *static_cast<std::vector<frame>*>(data) =
      frames_of(copied_stack(start.sp(), weft_test::end_of_thread_stack()), start);
}

TEST(UnwindOracle, a_function_without_tables_is_passed_by_its_frame_pointer_and_what_follows_is_a_guess) {
  std::vector<frame> with, through;
  void (*volatile direct)(void*) = &look;
  for (auto* each : {&with, &through}) {  // both from the same place
    if (each == &with) direct(each);
    if (each == &through) weft_test_without_tables(&look, each);
  }
  ASSERT_EQ(through.size(), with.size() + 1);
  const auto begin = reinterpret_cast<std::uintptr_t>(&weft_test_without_tables);
  const auto end = reinterpret_cast<std::uintptr_t>(weft_test_without_tables_end);
  std::size_t at = 0;
  while (at < through.size() && !(begin < through[at].pc && through[at].pc < end)) ++at;
  ASSERT_LT(at + 2, through.size()) << text_of(through);
  for (std::size_t i = 0; i < through.size(); ++i) EXPECT_EQ(through[i].is_guess, i > at) << text_of(through);
  // The caller of both calls them at different places.
  for (std::size_t i = at + 2; i < through.size(); ++i) EXPECT_EQ(through[i].pc, with[i - 1].pc) << text_of(through);
}

// Every instruction of the fixture is interrupted by a trap, and both unwind from there. The handler must not allocate: it
// may have interrupted malloc.
class every_instruction {
 public:
  static void run(void (*f)(frames::leaf, void*)) {
    struct sigaction act{};
    act.sa_sigaction = &handle;
    act.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGTRAP, &act, nullptr);
    steps_left = 1000;  // of an exception, not all
    asm volatile("pushfq\n\torl $0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
    f([](void*) { asm volatile(""); }, nullptr);
    asm volatile("pushfq\n\tandl $~0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
    signal(SIGTRAP, SIG_DFL);
  }

  static inline std::size_t compared = 0, different = 0;
  static inline std::uintptr_t first_different = 0, end_of_stack = 0;

 private:
  static constexpr std::size_t most = 24;  // frames; those around the place are of interest
  static inline std::size_t steps_left = 0;
  struct list {
    frame frames[most];
    std::size_t count = 0;
    std::uintptr_t from;
  };

  __attribute__((no_sanitize("address", "undefined"))) static void handle(int, siginfo_t*, void* ucontext) {
    auto* const context = static_cast<ucontext_t*>(ucontext);
    if (--steps_left == 0) context->uc_mcontext.gregs[REG_EFL] &= ~0x100;
    const registers start = from_signal(ucontext);
    static std::byte copy[64 << 10];
    const std::uintptr_t begin = start.sp() - machine::red_zone;
    const std::size_t size = std::min(sizeof copy, end_of_stack - begin);
    const auto* from = reinterpret_cast<const volatile std::byte*>(begin);
    for (std::size_t i = 0; i < size; ++i) copy[i] = from[i];
    list ours, theirs;
    ours.count = unwind({begin, std::span(copy).first(size)}, start, ours.frames);
    theirs.from = start.pc();
    _Unwind_Backtrace(&add_to_list, &theirs);
    const bool is_same = ours.count == theirs.count &&
                         std::equal(ours.frames, ours.frames + ours.count, theirs.frames, [](auto& a, auto& b) {
                           return a.pc == b.pc && a.is_exact == b.is_exact && !a.is_guess;
                         });
    ++compared;
    if (!is_same && different++ == 0) first_different = start.pc();
  }
  // From the interrupted frame on.
  static _Unwind_Reason_Code add_to_list(_Unwind_Context* c, void* to) {
    auto& l = *static_cast<list*>(to);
    int is_exact = 0;
    const std::uintptr_t pc = _Unwind_GetIPInfo(c, &is_exact);
    if (l.count == 0 && !(is_exact != 0 && pc == l.from)) return _URC_NO_REASON;
    if (pc != 0 && l.count < most) l.frames[l.count++] = {pc, false, is_exact != 0};
    return _URC_NO_REASON;
  }
};

// req: OB-1
TEST(UnwindOracle, wherever_a_thread_is_interrupted_its_frames_are_those_that_libgcc_finds_NoAsan) {
  support::watchdog guard(100s, "unwinding from every instruction");
  std::thread([] {
    every_instruction::end_of_stack = weft_test::end_of_thread_stack();
    for (const auto* v = frames::first; v != nullptr; v = v->next) {
      for (const auto& s : v->scenarios) {
        if (!s.may_wait) continue;
        SCOPED_TRACE(std::string(v->name) + " " + s.name);
        every_instruction::different = 0;
        every_instruction::run(s.run);
        EXPECT_EQ(every_instruction::different, 0u)
            << "first at offset "
            << every_instruction::first_different - object_at(every_instruction::first_different).begin;
      }
    }
  }).join();
  EXPECT_GT(every_instruction::compared, 1000u);
}

#endif

#if defined(__x86_64__) && !defined(WEFT_BOOST_SWITCH)

std::vector<frame> frames_by_libgcc(const weft::task::fiber& f) {
  std::vector<frame> found;
  weft_test_call_from(f.sp(), [](void* to) { *static_cast<std::vector<frame>*>(to) = frames_by_libgcc(); }, &found);
  const auto is_seed = [](const frame& each) {
    return each.pc >= reinterpret_cast<std::uintptr_t>(&weft_test_call_from) &&
           each.pc < reinterpret_cast<std::uintptr_t>(weft_test_call_from_end);
  };
  found.erase(found.begin(), std::find_if(found.begin(), found.end(), is_seed) + 1);
  return found;
}

// req: OB-1
TEST(UnwindOracle, the_frames_of_parked_tasks_are_those_that_libgcc_finds) {
  support::watchdog guard(60s, "unwinding parked tasks");
  watched_runtime rt(2);
  weft::event done;
  std::vector<weft::join_handle<void>> tasks;
  std::size_t expected = 0;
  for (const auto* v = frames::first; v != nullptr; v = v->next) {
    for (const auto& s : v->scenarios) {
      if (!s.may_wait) continue;
      ++expected;
      tasks.push_back(rt->spawn([&s, &done] { s.run([](void* e) { static_cast<weft::event*>(e)->wait(); }, &done); }));
    }
  }
  until([&] { return support::parked_tasks(rt.core()) == expected; });
  std::size_t compared = 0;
  rt.core().records().walk([&](const weft::task::record& t) {
    if (!support::is_parked(&t)) return;
    const auto& f = weft::task::as_fiber(t);
    const auto ours = frames_of(f);
    expect_same(ours, frames_by_libgcc(f));
    ASSERT_GE(ours.size(), 6u);
    // At the end stands the entry of the fiber.
    EXPECT_LT(ours.back().pc - reinterpret_cast<std::uintptr_t>(&weft_v1_context_start), 16u);
    ++compared;
  });
  EXPECT_EQ(compared, expected);
  done.set();
  for (auto& t : tasks) t.join();
}

// req: OB-1
TEST(UnwindOracle, a_fiber_that_has_not_started_has_one_frame) {
  weft::context::stack_pool pool;
  weft::context::stack* s = pool.acquire();
  const auto sp = reinterpret_cast<std::uintptr_t>(weft::context::prepare(s->top(), [](void*) {}));
  const copied_stack copy(sp, reinterpret_cast<std::uintptr_t>(s->top()));
  const auto found = frames_of(copy, saved_by_switch(copy.view()));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pc, reinterpret_cast<std::uintptr_t>(&weft_v1_context_start));
  pool.release(s);
}

#endif

}  // namespace
