#include "observe/unwind_step.hpp"

#include "observe/expression.hpp"

namespace weft::inline v1::observe {
namespace {

using kind = rule::kind;

// The value that a rule gives. False: not known.
bool apply(const rule& rule, const stack_copy& copy, const registers& r, std::uintptr_t cfa,
           std::uintptr_t& value) noexcept {
  const std::uintptr_t displaced = cfa + static_cast<std::uintptr_t>(rule.offset);
  std::uintptr_t place = 0;
  switch (rule.what) {
    case kind::at_offset: return copy.read(displaced, value);
    case kind::offset: value = displaced; return true;
    case kind::in_register: value = r.value[rule.number]; return r.knows(rule.number);
    case kind::expression: return evaluate(rule.expression_code(), r, copy, cfa, value);
    case kind::at_expression: return evaluate(rule.expression_code(), r, copy, cfa, place) && copy.read(place, value);
    case kind::same:
    case kind::undefined: return false;
  }
  return false;
}

bool find_cfa(const rule& rule, const stack_copy& copy, const registers& r, std::uintptr_t& cfa) noexcept {
  if (rule.what == kind::expression) return evaluate(rule.expression_code(), r, copy, 0, cfa);
  cfa = r.value[rule.number] + static_cast<std::uintptr_t>(rule.offset);
  return r.knows(rule.number);
}

// A return address can carry a signature in its upper bits (aarch64).
std::uintptr_t without_signature(std::uintptr_t pc) noexcept {
#if defined(__aarch64__)
  register std::uintptr_t link asm("x30") = pc;
  asm("hint #7" : "+r"(link));  // xpaclri; nothing on processors that do not sign
  return link;
#else
  return pc;
#endif
}

}  // namespace

bool step(const stack_copy& copy, const frame_rules& rules, registers& r) noexcept {
  const rule& return_rule = rules.of[rules.return_column];
  if (return_rule.what == kind::undefined) return false;  // the outermost frame
  // Where the return address has a column of its own, it cannot still be "in the register".
  if (return_rule.what == kind::same && rules.return_column == machine::program_counter) return false;

  std::uintptr_t cfa = 0;
  if (!find_cfa(rules.cfa, copy, r, cfa)) return false;
  registers caller = r;
  caller.set(machine::stack_pointer, cfa);  // by definition, unless a rule says something else
  for (std::size_t i = 0; i < machine::registers; ++i) {
    if (rules.of[i].what == kind::same) continue;
    std::uintptr_t value = 0;
    if (apply(rules.of[i], copy, r, cfa, value)) {
      caller.set(i, value);
    } else {
      caller.forget(i);
    }
  }
  if (!caller.knows(rules.return_column) || !caller.knows(machine::stack_pointer)) return false;
  caller.set(machine::program_counter, without_signature(caller.value[rules.return_column]));
  caller.is_exact = rules.is_signal_frame;

  // Every step moves outwards (observe.U2). Only a function that was interrupted before it made a frame may leave the stack pointer as it is, and only
  // where a call pushes nothing.
  const bool moves = caller.sp() > r.sp() || (caller.sp() == r.sp() && r.is_exact);
  if (!moves || caller.pc() == 0) return false;
  r = caller;
  return true;
}

bool guess_step(const stack_copy& copy, registers& r) noexcept {
  const std::uintptr_t frame = r.value[machine::frame_pointer];
  registers caller;
  std::uintptr_t next = 0, pc = 0;
  if (!r.knows(machine::frame_pointer) || frame < r.sp()) return false;
  if (!copy.read(frame, next) || !copy.read(frame + sizeof next, pc)) return false;
  caller.set(machine::frame_pointer, next);
  caller.set(machine::stack_pointer, frame + 2 * sizeof next);
  caller.set(machine::program_counter, without_signature(pc));
  // What lies in no object was no return address.
  if (object_at(caller.pc()).link_map == nullptr) return false;
  r = caller;
  return true;
}

}  // namespace weft::inline v1::observe
