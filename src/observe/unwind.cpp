#include "observe/unwind.hpp"

#include <algorithm>
#include <cstring>

#include "observe/eh_frame.hpp"
#include "observe/rule_cache.hpp"
#include "observe/unwind_step.hpp"

namespace weft::inline v1::observe {
namespace {

constinit rule_cache rules_seen;

// Null if the tables say nothing about the frame. `spare` takes the rules if the cache cannot.
const frame_rules* rules_of(const registers& r, rule_cache* cached, frame_rules& spare) noexcept {
  // A call may be the last instruction of a function, and then the return address is in the next one.
  const std::uintptr_t pc = r.is_exact ? r.pc() : r.pc() - 1;
  const object in = object_at(pc);
  if (in.header == 0) return nullptr;
  if (cached != nullptr) {
    if (const frame_rules* found = cached->find(in, pc)) return found;
  }
  function_entry f;
  if (!find_entry(tables_of(in), pc, f) || !rules_at(f, pc, in.header, spare)) return nullptr;
  if (cached != nullptr) cached->keep(in, pc, spare);
  return &spare;
}

}  // namespace

bool stack_copy::read(std::uintptr_t from, std::uintptr_t& word) const noexcept {
  const std::uintptr_t offset = from - address;
  if (offset > bytes.size() || bytes.size() - offset < sizeof word) return false;
  std::memcpy(&word, bytes.data() + offset, sizeof word);
  return true;
}

std::size_t unwind(const stack_copy& copy, registers start, std::span<frame> out) noexcept {
  registers& r = start;
  const std::size_t most = std::min(out.size(), most_frames);
  if (!r.knows(machine::program_counter) || !r.knows(machine::stack_pointer) || r.pc() == 0) return 0;
  const rule_cache::use cached(rules_seen);
  frame_rules spare;
  std::size_t count = 0;
  bool is_guess = false;
  while (count < most) {
    out[count++] = {r.pc(), is_guess, r.is_exact};
    const frame_rules* rules = rules_of(r, cached.get(), spare);
    if (!(rules != nullptr ? step(copy, *rules, r) : guess_step(copy, r))) break;
    is_guess = is_guess || rules == nullptr;  // and so is all that follows from a guess
  }
  return count;
}

}  // namespace weft::inline v1::observe
