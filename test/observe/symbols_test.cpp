// Names and lines of the frames of parked tasks: the function of the user is there, with the line at which it waits, and
// Weft's own frames can be hidden.
#include "observe/symbols.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "observe/stacks.hpp"
#include "support/usual.hpp"

#pragma GCC diagnostic ignored "-Wunused-result"

namespace user {  // of Weft

#define NOINLINE __attribute__((noinline))

int receives_line, locks_line, sleeps_line, joins_line;

NOINLINE int receives(weft::reader<int>& from) {
  receives_line = __LINE__ + 1;
  auto value = from.recv();
  return value ? *value : -1;
}
NOINLINE void locks(weft::mutex& m) {
  locks_line = __LINE__ + 1;
  m.lock();
  m.unlock();
}
NOINLINE void sleeps() {
  sleeps_line = __LINE__ + 1;
  weft::sleep_for(std::chrono::hours(1));
  asm volatile("");  // no tail call
}
NOINLINE void joins(weft::join_handle<void>& other) {
  joins_line = __LINE__ + 1;
  other.join();
  asm volatile("");
}

}  // namespace user

namespace {

using namespace support::usual;
using namespace weft::observe;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using weft_test::frames_of;

// Without libbacktrace only exported functions have names, and nothing has lines.
bool has_lines() { return !symbols_of(reinterpret_cast<std::uintptr_t>(&user::sleeps), true).front().file.empty(); }

#if !defined(WEFT_BOOST_SWITCH)

std::string text_of(std::span<const symbol> stack) {
  std::string text;
  for (const symbol& s : stack)
    text += s.function + (s.is_inlined ? " (inlined) " : " ") + s.file + ":" + std::to_string(s.line) + "\n";
  return text;
}

// The stacks of all parked tasks of a runtime, innermost function of the user first.
std::vector<std::vector<symbol>> user_stacks(weft::sched::scheduler& of) {
  std::vector<std::vector<symbol>> stacks;
  of.records().walk([&](const weft::task::record& t) {
    if (!support::is_parked(&t)) return;
    const auto all = symbols_of(frames_of(weft::task::as_fiber(t)));
    const auto shown = without_weft(all);
    stacks.emplace_back(shown.begin(), shown.end());
    EXPECT_LT(shown.size(), all.size()) << text_of(all);
  });
  return stacks;
}

const std::vector<symbol>* stack_in(const std::vector<std::vector<symbol>>& stacks, const char* function) {
  for (const auto& s : stacks) {
    if (!s.empty() && s.front().function.starts_with(function)) return &s;
  }
  return nullptr;
}

TEST(Symbols, a_parked_task_is_shown_with_the_users_function_and_line_whatever_it_waits_for) {
  if (!has_lines()) GTEST_SKIP() << "no libbacktrace";
  support::watchdog guard(60s, "naming frames");
  watched_runtime rt(2);
  auto [to, from] = weft::make_channel<int>();
  weft::mutex m;
  m.lock();
  auto receiver = rt->spawn([&f = from] { user::receives(f); });
  auto locker = rt->spawn([&] { user::locks(m); });
  auto sleeper = rt->spawn([] { user::sleeps(); });
  auto joiner = rt->spawn([&] { user::joins(locker); });
  until([&] { return support::parked_tasks(rt.core()) == 4; });

  const auto stacks = user_stacks(rt.core());
  const struct {
    const char* function;
    int line;
  } expected[] = {{"user::receives(", user::receives_line},
                  {"user::locks(", user::locks_line},
                  {"user::sleeps(", user::sleeps_line},
                  {"user::joins(", user::joins_line}};
  for (const auto& e : expected) {
    const auto* found = stack_in(stacks, e.function);
    if (found == nullptr) {
      for (const auto& s : stacks) ADD_FAILURE() << e.function << " not at the front of\n" << text_of(s);
      continue;
    }
    EXPECT_THAT(found->front().file, EndsWith("symbols_test.cpp"));
    EXPECT_EQ(found->front().line, e.line) << e.function;
    // At the outer end stands the lambda that was spawned. Inlined, it has its plain name only at -g1.
    EXPECT_THAT(found->back().function, HasSubstr("operator()")) << text_of(*found);
    EXPECT_THAT(found->back().file, EndsWith("symbols_test.cpp")) << text_of(*found);
  }
  m.unlock();
  to.close();
  sleeper.cancel();
  joiner.join();
  receiver.join();
}

#endif

[[gnu::always_inline]] inline std::uintptr_t inlined_place() {
  std::uintptr_t pc;
#if defined(__x86_64__)
  asm volatile("1: lea 1b(%%rip), %0" : "=r"(pc));
#else
  asm volatile("adr %0, ." : "=r"(pc));
#endif
  return pc;
}
[[gnu::noinline]] std::uintptr_t place_in_a_function() {
  const auto pc = inlined_place();
  asm volatile("");
  return pc;
}

TEST(Symbols, an_inlined_function_comes_before_the_one_that_it_was_inlined_into) {
  if (!has_lines()) GTEST_SKIP() << "no libbacktrace";
  const auto found = symbols_of(place_in_a_function(), true);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0].function, HasSubstr("inlined_place"));
  EXPECT_TRUE(found[0].is_inlined);
  EXPECT_THAT(found[1].function, HasSubstr("(anonymous namespace)::place_in_a_function()"));
  EXPECT_FALSE(found[1].is_inlined);
  EXPECT_GT(found[1].line, found[0].line);
}

TEST(Symbols, a_function_of_another_object_has_a_name) {
  const auto pc = reinterpret_cast<std::uintptr_t>(dlsym(RTLD_DEFAULT, "qsort"));
  const auto found = symbols_of(pc, true);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].function, HasSubstr("qsort"));
}

TEST(Symbols, an_address_without_a_name_is_told_as_an_offset_in_its_object) {
  EXPECT_EQ(symbols_of(0x1234, true).at(0).function, "0x1234");
  EXPECT_EQ(symbols_of(0x1235, false).at(0).function, "0x1234") << "a return address stands for the call before it";
}

symbol named(const char* function, const char* file = "") { return {function, file, 1, false}; }

TEST(Symbols, functions_of_weft_are_told_from_those_of_users) {
  for (const char* own : {"weft_v1_context_start", "weft::v1::sched::worker::run()",
                          "void weft::v1::detail::run_body<main::{lambda(int)#1}>(void*)",
                          "std::vector<user::x, std::allocator<user::x> > weft::v1::collect<user::x>(user::x&)",
                          "weft::v1::(anonymous namespace)::f(int)", "weft::v1::f()::{lambda()#1}::operator()() const",
                          "decltype (f({parm#1})) weft::v1::g<int>(int)", "weft::v1::x::operator bool() const"}) {
    EXPECT_TRUE(is_weft_internal(named(own))) << own;
  }
  for (const char* other : {"main", "user::f(weft::v1::mutex&)", "weftlike::f()",
                            "main::{lambda(weft::v1::scope&)#1}::"
                            "operator()(weft::v1::scope&) const",
                            "void user::f<weft::v1::mutex>(int)", "weft::v1::task<int> user::make<int>()",
                            "(anonymous namespace)::weft::f()", "user::operator<(weft::v1::x const&)",
                            "bool user::operator< <int>(weft::v1::x const&)"}) {
    EXPECT_FALSE(is_weft_internal(named(other))) << other;
  }
  EXPECT_TRUE(is_weft_internal(named("inlined", "/usr/include/weft/mutex.hpp")));
  EXPECT_FALSE(is_weft_internal(named("inlined", "/home/user/weft.cpp")));
}

TEST(Symbols, the_frames_of_weft_are_hidden_at_both_ends_only) {
  const std::vector<symbol> stack{named("weft_v1_context_jump"),
                                  named("weft::v1::waits::park(int)"),
                                  named("user::inner()"),
                                  named("weft::v1::call<user::f>(user::f)"),
                                  named("user::outer()"),
                                  named("void std::__invoke_impl<void, user::g>(std::__invoke_other, user::g&&)"),
                                  named("void weft::v1::run<user::g>(void*)"),
                                  named("weft_v1_context_start")};
  const auto shown = without_weft(stack);
  ASSERT_EQ(shown.size(), 3u);
  EXPECT_EQ(shown.front().function, "user::inner()");
  EXPECT_EQ(shown.back().function, "user::outer()");
  EXPECT_EQ(without_weft(std::span(stack).first(2)).size(), 2u) << "of a stack that is Weft's altogether, all is shown";
}

#if !defined(WEFT_BOOST_SWITCH)

void print_a_stack() {
  watched_runtime rt(1);
  auto sleeper = rt->spawn([] { user::sleeps(); });
  until([&] { return support::parked_tasks(rt.core()) == 1; });
  rt.core().records().walk([&](const weft::task::record& t) {
    if (!support::is_parked(&t)) return;
    for (const symbol& s : symbols_of(frames_of(weft::task::as_fiber(t))))
      std::printf("frame %s\n", s.function.c_str());
  });
  sleeper.cancel();
}

TEST(Symbols, a_stripped_program_shows_all_frames_as_offsets) {
  if (std::getenv("WEFT_TEST_PRINTS") != nullptr) return print_a_stack();  // this program, run by itself, and a copy
  if (!has_lines()) GTEST_SKIP() << "no libbacktrace";
  const auto run = [](const std::string& command) {
    std::string said;
    std::FILE* out = popen(command.c_str(), "r");
    for (char line[1000]; std::fgets(line, sizeof line, out) != nullptr;) said += line;
    pclose(out);
    return said;
  };
  char self[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", self, sizeof self - 1), 0);
  const std::string stripped = std::string(self) + ".stripped." + std::to_string(getpid());
  if (std::system(("strip -o " + stripped + " " + self).c_str()) != 0) GTEST_SKIP() << "no strip";
  const std::string arguments = " --gtest_filter=Symbols.a_stripped_program_shows_all_frames_as_offsets";
  const auto frames_in = [](const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find("frame ", at)) != text.npos; ++at) ++count;
    return count;
  };
  const support::environment prints("WEFT_TEST_PRINTS", "1");
  const std::string with = run(self + arguments);
  const std::string without = run(stripped + arguments);
  unlink(stripped.c_str());
  EXPECT_THAT(with, HasSubstr("frame user::sleeps()"));
  EXPECT_THAT(without, testing::Not(HasSubstr("user::sleeps")));
  EXPECT_THAT(without, HasSubstr(".stripped."));
  EXPECT_THAT(without, HasSubstr("+0x"));
  EXPECT_GE(frames_in(without), 6u) << without;  // inlined ones are missing
}

#endif

}  // namespace
