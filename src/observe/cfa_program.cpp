#include "observe/cfa_program.hpp"

namespace weft::inline v1::observe {
namespace {

using kind = rule::kind;

class interpreter {
  enum instruction : std::uint8_t {
    // The upper two bits, the lower six are the operand.
    advance_by = 0x40,
    offset_of = 0x80,
    restore_of = 0xc0,
    // The lower six bits, the upper two are 0.
    nop = 0x00,
    set_loc = 0x01,
    advance_loc1 = 0x02,
    advance_loc2 = 0x03,
    advance_loc4 = 0x04,
    offset_extended = 0x05,
    restore_extended = 0x06,
    undefined = 0x07,
    same_value = 0x08,
    in_register = 0x09,
    remember_state = 0x0a,
    restore_state = 0x0b,
    def_cfa = 0x0c,
    def_cfa_register = 0x0d,
    def_cfa_offset = 0x0e,
    def_cfa_expression = 0x0f,
    expression = 0x10,
    offset_extended_sf = 0x11,
    def_cfa_sf = 0x12,
    def_cfa_offset_sf = 0x13,
    val_offset = 0x14,
    val_offset_sf = 0x15,
    val_expression = 0x16,
    negate_ra_state = 0x2d,  // aarch64: the return address is signed from here on; we strip signatures anyway
    gnu_args_size = 0x2e,
    gnu_negative_offset_extended = 0x2f,
  };

 public:
  interpreter(const function_entry& f, std::uintptr_t data, frame_rules& rules) noexcept
      : f_(f),
        data_(data),
        rules_(rules),
        at_(f.begin) {}

  [[nodiscard]] bool run(std::uintptr_t pc) noexcept {
    if (!execute(f_.common, ~std::uintptr_t{0})) return false;
    initial_ = rules_;
    at_ = f_.begin;
    return execute(f_.own, pc);
  }

 private:
  // Until the row that begins after `pc`.
  bool execute(byte_reader program, std::uintptr_t pc) noexcept {
    while (!program.is_at_end()) {
      const auto code = program.fixed<std::uint8_t>();
      const std::uint8_t operand = code & 0x3f;
      switch (code & 0xc0) {
        case advance_by: advance(operand); break;
        case offset_of: set(operand, kind::at_offset, aligned(program.uleb())); break;
        case restore_of: restore(operand); break;
        default:
          if (!execute_extended(operand, program)) return false;
      }
      if (program.has_failed()) return false;
      if (at_ > pc) return true;
    }
    return true;
  }

  bool execute_extended(std::uint8_t code, byte_reader& r) noexcept {
    switch (code) {
      case nop:
      case negate_ra_state: return true;
      case set_loc: at_ = encoded_pointer(r, f_.pointer_encoding, data_); return true;
      case advance_loc1: advance(r.fixed<std::uint8_t>()); return true;
      case advance_loc2: advance(r.fixed<std::uint16_t>()); return true;
      case advance_loc4: advance(r.fixed<std::uint32_t>()); return true;
      case gnu_args_size: static_cast<void>(r.uleb()); return true;
      case remember_state:
        if (depth_ == std::size(remembered_)) return false;
        remembered_[depth_++] = rules_;
        return true;
      case restore_state:
        if (depth_ == 0) return false;
        rules_ = remembered_[--depth_];
        return true;
      case def_cfa:
      case def_cfa_sf:
      case def_cfa_register:
      case def_cfa_offset:
      case def_cfa_offset_sf:
      case def_cfa_expression: return define_cfa(code, r);
      default: break;
    }
    const std::uint64_t column = r.uleb();
    switch (code) {
      case offset_extended: set(column, kind::at_offset, aligned(r.uleb())); return true;
      case offset_extended_sf: set(column, kind::at_offset, aligned(r.sleb())); return true;
      case gnu_negative_offset_extended: set(column, kind::at_offset, -aligned(r.uleb())); return true;
      case val_offset: set(column, kind::offset, aligned(r.uleb())); return true;
      case val_offset_sf: set(column, kind::offset, aligned(r.sleb())); return true;
      case restore_extended: restore(column); return true;
      case undefined: set(column, kind::undefined, 0); return true;
      case same_value: set(column, kind::same, 0); return true;
      case in_register: return set_register(column, r.uleb());
      case expression: return set_expression(column, kind::at_expression, r);
      case val_expression: return set_expression(column, kind::expression, r);
      default: return false;
    }
  }

  bool define_cfa(std::uint8_t code, byte_reader& r) noexcept {
    rule& cfa = rules_.cfa;
    if (code == def_cfa_expression) {
      cfa = expression_rule(kind::expression, r);
      return true;
    }
    if (code == def_cfa || code == def_cfa_sf || code == def_cfa_register) {
      const std::uint64_t number = r.uleb();
      if (number >= machine::registers) return false;
      if (cfa.what != kind::offset) cfa = {kind::offset, 0, {0}};
      cfa.number = static_cast<std::uint32_t>(number);
    }
    if (cfa.what != kind::offset) return false;  // an offset from what?
    if (code == def_cfa || code == def_cfa_offset) {
      cfa.offset = static_cast<std::int64_t>(r.uleb());
    } else if (code != def_cfa_register) {
      cfa.offset = aligned(r.sleb());
    }
    return true;
  }

  // Wraps around instead of overflowing, if the tables are garbage.
  void advance(std::uint64_t by) noexcept { at_ += by * f_.code_alignment; }
  [[nodiscard]] std::int64_t aligned(std::uint64_t factor) const noexcept {
    return static_cast<std::int64_t>(factor * static_cast<std::uint64_t>(f_.data_alignment));
  }
  [[nodiscard]] std::int64_t aligned(std::int64_t factor) const noexcept {
    return aligned(static_cast<std::uint64_t>(factor));
  }

  // Other columns are registers that nobody needs for unwinding, vectors for example.
  void set(std::uint64_t column, kind what, std::int64_t offset) noexcept {
    if (column < machine::registers) rules_.of[column] = {what, 0, {offset}};
  }
  void restore(std::uint64_t column) noexcept {
    if (column < machine::registers) rules_.of[column] = initial_.of[column];
  }
  bool set_register(std::uint64_t column, std::uint64_t number) noexcept {
    if (column >= machine::registers) return true;
    if (number >= machine::registers) return false;
    rules_.of[column] = {kind::in_register, static_cast<std::uint32_t>(number), {0}};
    return true;
  }
  bool set_expression(std::uint64_t column, kind what, byte_reader& r) noexcept {
    const rule made = expression_rule(what, r);
    if (column < machine::registers) rules_.of[column] = made;
    return true;
  }
  static rule expression_rule(kind what, byte_reader& r) noexcept {
    const auto code = r.part(r.uleb()).left();
    rule result{what, static_cast<std::uint32_t>(code.size()), {0}};
    result.code = code.data();
    return result;
  }

  const function_entry& f_;
  const std::uintptr_t data_;
  frame_rules& rules_;
  std::uintptr_t at_;  // where the row that is being built begins
  frame_rules initial_;
  frame_rules remembered_[8];  // compilers nest one or two
  std::size_t depth_ = 0;
};

}  // namespace

bool rules_at(const function_entry& f, std::uintptr_t pc, std::uintptr_t data, frame_rules& rules) noexcept {
  rules = {};
  if (f.return_column >= machine::registers) return false;
  rules.return_column = static_cast<std::uint32_t>(f.return_column);
  rules.is_signal_frame = f.is_signal_frame;
  return interpreter(f, data, rules).run(pc) && rules.cfa.what != kind::same;
}

}  // namespace weft::inline v1::observe
