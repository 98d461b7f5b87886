// What a function has done with its frame at one pc: the rows that the instructions of .eh_frame describe.
//
// The CFA (canonical frame address) is the stack pointer before the call of the function. Where the caller's registers are
// is said relative to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "observe/eh_frame.hpp"
#include "observe/machine.hpp"

namespace weft::inline v1::observe {

struct rule {
  enum class kind : std::uint8_t {
    same,  // still in the register
    undefined,  // lost; for the return address: there is no caller
    at_offset,  // in memory at CFA + offset
    offset,  // CFA + offset; for the CFA itself: register `number` + offset
    in_register,  // in register `number`
    at_expression,  // in memory where the expression says
    expression,  // what the expression says
  };
  kind what = kind::same;
  std::uint32_t number = 0;  // a register, or the length of the expression
  union {
    std::int64_t offset = 0;
    const std::byte* code;  // of the expression, in the tables
  };

  [[nodiscard]] std::span<const std::byte> expression_code() const noexcept { return {code, number}; }
};

struct frame_rules {
  rule cfa;  // by offset or expression
  rule of[machine::registers];
  std::uint32_t return_column = 0;  // the register that holds the return address
  bool is_signal_frame = false;  // its caller did not call it, but was interrupted
};

// The rules at `pc`, which lies in the function. False if the instructions make no sense.
[[nodiscard]] bool rules_at(const function_entry& f, std::uintptr_t pc, std::uintptr_t data,
                            frame_rules& rules) noexcept;

}  // namespace weft::inline v1::observe
