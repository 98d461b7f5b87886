// The unwinder on garbage: stacks of random words, tables with random bytes, expressions of random bytes. It finds whatever it
// finds, but it reads nothing outside of what it was given (AddressSanitizer looks on), and it comes to an end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "observe/expression.hpp"
#include "observe/stacks.hpp"
#include "observe/unwind_step.hpp"
#include "support/usual.hpp"

namespace {

using namespace support::usual;
using namespace weft::observe;
using support::soaked;

using generator = std::mt19937_64;

// Anything in an object of the program.
std::uintptr_t some_pc(generator& g, const object& in) { return in.begin + g() % (in.end - in.begin); }

object this_program() { return object_at(reinterpret_cast<std::uintptr_t>(&this_program)); }
object this_library() { return object_at(reinterpret_cast<std::uintptr_t>(&std::memcpy)); }

constexpr std::uintptr_t where = 0x7ffff0000000;

std::vector<std::byte> random_stack(generator& g) {
  std::vector<std::uintptr_t> words(g() % 600);
  for (auto& w : words) {
    switch (g() % 4) {
      case 0: w = where + g() % (words.size() * 8 + 64); break;  // into the stack
      case 1: w = some_pc(g, this_program()); break;
      case 2: w = some_pc(g, this_library()); break;
      default: w = g() >> g() % 64; break;
    }
  }
  std::vector<std::byte> bytes(words.size() * 8);
  if (!words.empty()) std::memcpy(bytes.data(), words.data(), bytes.size());
  bytes.resize(bytes.size() - std::min<std::size_t>(bytes.size(), g() % 8));  // a copy can end anywhere
  return bytes;
}

registers random_registers(generator& g, std::size_t stack) {
  registers r;
  for (std::size_t i = 0; i < machine::registers; ++i) {
    if (g() % 8 != 0) r.set(i, g() % 2 != 0 ? where + g() % (stack + 1) : g());
  }
  r.set(machine::stack_pointer, g() % 16 == 0 ? g() : where + g() % (stack + 1));
  r.set(machine::program_counter, some_pc(g, g() % 2 != 0 ? this_program() : this_library()));
  r.is_exact = g() % 2 != 0;
  return r;
}

// req: OB-1
TEST(UnwindFuzz, a_stack_of_garbage_comes_to_an_end) {
  support::watchdog guard(100s, "unwinding garbage");
  generator g(1);
  std::size_t frames_found = 0;
  for (std::size_t i = 0, n = soaked(10'000, 50'000); i < n; ++i) {
    const auto bytes = random_stack(g);
    frame found[most_frames + 10];
    const std::size_t count = unwind({where, bytes}, random_registers(g, bytes.size()), found);
    ASSERT_GE(count, 1u);
    ASSERT_LE(count, most_frames);
    frames_found += count;
  }
  EXPECT_GT(frames_found, soaked(10'000, 50'000)) << "some garbage looks like frames";
}

// req: OB-1
TEST(UnwindFuzz, an_empty_copy_and_unknown_registers_are_no_error) {
  frame found[4];
  EXPECT_EQ(unwind({where, {}}, saved_by_switch({where, {}}), found), 0u);
  registers r;
  EXPECT_EQ(unwind({where, {}}, r, found), 0u);
  r.set(machine::program_counter, reinterpret_cast<std::uintptr_t>(&this_program));
  EXPECT_EQ(unwind({where, {}}, r, found), 0u) << "without a stack pointer";
  r.set(machine::stack_pointer, where);
  EXPECT_EQ(unwind({where, {}}, r, found), 1u) << "the frame itself is known, its caller is not";
  EXPECT_EQ(unwind({where, {}}, r, {}), 0u);
}

// A copy of the tables of an object that can be damaged and repaired.
class damaged_tables {
 public:
  explicit damaged_tables(const object& of) {
    const image whole = tables_of(of);
    clean_ = weft_test::bytes_at(whole.address, whole.address + whole.bytes.size());
    bytes_ = clean_;
    image_ = {whole.address, bytes_, whole.header};
  }
  [[nodiscard]] const image& view() const { return image_; }
  [[nodiscard]] bool is_usable() const { return !bytes_.empty(); }
  void damage_near(std::uintptr_t address, std::size_t reach, generator& g) {
    const std::uintptr_t at = address - image_.address + g() % (2 * reach) - reach;
    if (at >= bytes_.size()) return;
    // Often something that means something: the largest number, an instruction, an expression.
    constexpr std::uint8_t likely[] = {0xff, 0x7f, 0x80, 0x00, 0x0f, 0x10, 0x16, 0x0a, 0x0b, 0x01, 0x04, 0x2d};
    bytes_[at] = std::byte(g() % 2 != 0 ? likely[g() % std::size(likely)] : g() & 0xff);
    damaged_.push_back(at);
  }
  void repair() {
    for (const auto at : damaged_) bytes_[at] = clean_[at];
    damaged_.clear();
  }

 private:
  std::vector<std::byte> clean_, bytes_;
  std::vector<std::uintptr_t> damaged_;
  image image_;
};

// req: OB-1
TEST(UnwindFuzz, damaged_tables_are_read_within_their_bounds) {
  support::watchdog guard(100s, "reading damaged tables");
  generator g(2);
  for (const object& of : {this_program(), this_library()}) {
    damaged_tables tables(of);
    ASSERT_TRUE(tables.is_usable());
    std::size_t described = 0, stepped = 0;
    for (std::size_t i = 0, n = soaked(10'000, 50'000); i < n; ++i) {
      std::uintptr_t pc = 0;
      function_entry clean;
      for (int tries = 0; tries < 100; ++tries) {
        pc = some_pc(g, of);
        if (find_entry(tables.view(), pc, clean)) break;
      }
      for (std::uint64_t k = g() % 4; k > 0; --k) {
        const std::uintptr_t places[] = {tables.view().header + 8, clean.own.address(), clean.common.address()};
        tables.damage_near(places[g() % 3], g() % 3 != 0 ? 16 : 64, g);
      }
      function_entry f;
      frame_rules rules;
      if (find_entry(tables.view(), pc, f) && rules_at(f, pc, of.header, rules)) {
        ++described;
        const auto bytes = random_stack(g);
        registers r = random_registers(g, bytes.size());
        stepped += step({where, bytes}, rules, r) ? 1 : 0;
      }
      tables.repair();
    }
    EXPECT_GT(described, soaked(10'000, 50'000) / 10);
    EXPECT_GT(stepped, 0u);
  }
}

// req: OB-1
TEST(UnwindFuzz, a_header_without_an_index_is_scanned_from_its_beginning) {
  const image whole = tables_of(this_program());
  auto bytes = weft_test::bytes_at(whole.address, whole.address + whole.bytes.size());
  const image copy{whole.address, bytes, whole.header};
  const auto pc = reinterpret_cast<std::uintptr_t>(&this_program);
  function_entry by_index, by_scan;
  ASSERT_TRUE(find_entry(copy, pc, by_index));
  bytes[whole.header - whole.address + 3] = std::byte(0xff);  // DW_EH_PE_omit
  ASSERT_TRUE(find_entry(copy, pc, by_scan));
  EXPECT_EQ(by_index.begin, by_scan.begin);
  EXPECT_EQ(by_index.own.address(), by_scan.own.address());
  EXPECT_FALSE(find_entry(copy, 1, by_scan));
}

// req: OB-1
TEST(UnwindFuzz, an_expression_of_garbage_comes_to_an_end) {
  support::watchdog guard(100s, "evaluating garbage");
  generator g(3);
  std::size_t evaluated = 0;
  for (std::size_t i = 0, n = soaked(50'000, 500'000); i < n; ++i) {
    std::vector<std::byte> code(g() % 24);
    for (auto& b : code) b = std::byte(g() % 3 == 0 ? g() & 0xff : 0x10 + g() % 0x80);
    const auto bytes = i % 16 == 0 ? random_stack(g) : std::vector<std::byte>(64);
    std::uintptr_t result = 0;
    evaluated += evaluate(code, random_registers(g, bytes.size()), {where, bytes}, g(), result) ? 1 : 0;
  }
  EXPECT_GT(evaluated, 0u);
}

// The rules of a function with a frame pointer, whose frame lies at `frame`.
bool steps_from(std::uintptr_t sp, std::uintptr_t frame, bool is_exact) {
  const std::vector<std::byte> bytes(256, std::byte(1));
  frame_rules rules;
  rules.return_column = machine::program_counter;
  rules.cfa = {rule::kind::offset, machine::frame_pointer, {16}};
  rules.of[machine::program_counter] = {rule::kind::at_offset, 0, {-8}};
  registers r;
  r.set(machine::stack_pointer, sp);
  r.set(machine::frame_pointer, frame);
  r.is_exact = is_exact;
  return step({where, bytes}, rules, r);
}

TEST(UnwindFuzz, a_step_leads_outwards_or_nowhere) {
  EXPECT_TRUE(steps_from(where + 64, where + 96, false));
  EXPECT_FALSE(steps_from(where + 64, where + 16, false)) << "to a frame further in";
  EXPECT_FALSE(steps_from(where + 64, where + 48, false)) << "to the same place";
  EXPECT_TRUE(steps_from(where + 64, where + 48, true))
      << "interrupted before it had a frame, where a call pushes nothing";
  EXPECT_FALSE(steps_from(where + 64, where + 248, false)) << "out of the copy";
}

TEST(UnwindFuzz, expressions_compute_what_dwarf_says) {
  registers r;
  r.set(machine::stack_pointer, where);
  r.set(machine::program_counter, 0x40100b);
  std::vector<std::byte> bytes(32);
  bytes[8] = std::byte(42);
  const auto result = [&](std::initializer_list<int> code) {
    std::vector<std::byte> program;
    for (const int b : code) program.push_back(std::byte(b));
    std::uintptr_t value = 0;
    EXPECT_TRUE(evaluate(program, r, {where, bytes}, 1000, value));
    return value;
  };
  constexpr int sp = 0x70 + machine::stack_pointer;
  EXPECT_EQ(result({}), 1000u);
  EXPECT_EQ(result({sp, 8, 0x06}), 42u);  // what lies at sp + 8
  EXPECT_EQ(result({sp, 0, 0x23, 0x08, 0x94, 1}), 42u);  // the same, one byte
  EXPECT_EQ(result({0x35, 0x33, 0x1c}), 2u);  // 5 - 3
  EXPECT_EQ(result({0x35, 0x33, 0x16, 0x1c}), std::uintptr_t(-2));  // swapped
  EXPECT_EQ(result({0x31, 0x32, 0x33, 0x17, 0x1c, 0x1c}), std::uintptr_t(3 - (1 - 2)));  // rotated: 3 1 2
  EXPECT_EQ(result({0x08, 0xf0, 0x09, 0xf0, 0x22}), 0xe0u);  // 240 + -16
  EXPECT_EQ(result({0x09, 0xf8, 0x32, 0x26}), std::uintptr_t(-2));  // -8 >> 2
  EXPECT_EQ(result({0x09, 0xf8, 0x32, 0x1b}), std::uintptr_t(-4));  // -8 / 2
  EXPECT_EQ(result({0x09, 0xff, 0x31, 0x2d}), 1u);  // -1 < 1
  EXPECT_EQ(result({0x31, 0x28, 1, 0, 0x30, 0x35}), 5u);  // a branch that is taken
  EXPECT_EQ(result({0x30, 0x28, 1, 0, 0x37, 0x31, 0x22}), 8u);  // one that is not
  EXPECT_EQ(result({0x10, 0x80, 0x01, 0x11, 0x7f, 0x22}), 127u);  // 128 + -1, of variable length
#if defined(__x86_64__)
  // A stub of the linkage table: sp + 8, and 8 more once the index was pushed.
  EXPECT_EQ(result({0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}), where + 16);
#endif
}

}  // namespace
