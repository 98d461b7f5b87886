#include "observe/expression.hpp"

#include "observe/byte_reader.hpp"

namespace weft::inline v1::observe {
namespace {

class evaluator {
  enum operation : std::uint8_t {
    op_addr = 0x03,
    op_deref = 0x06,
    op_const1u = 0x08,
    op_const1s = 0x09,
    op_const2u = 0x0a,
    op_const2s = 0x0b,
    op_const4u = 0x0c,
    op_const4s = 0x0d,
    op_const8u = 0x0e,
    op_const8s = 0x0f,
    op_constu = 0x10,
    op_consts = 0x11,
    op_dup = 0x12,
    op_drop = 0x13,
    op_over = 0x14,
    op_pick = 0x15,
    op_swap = 0x16,
    op_rot = 0x17,
    op_abs = 0x19,
    op_and = 0x1a,
    op_div = 0x1b,
    op_minus = 0x1c,
    op_mod = 0x1d,
    op_mul = 0x1e,
    op_neg = 0x1f,
    op_not = 0x20,
    op_or = 0x21,
    op_plus = 0x22,
    op_plus_uconst = 0x23,
    op_shl = 0x24,
    op_shr = 0x25,
    op_shra = 0x26,
    op_xor = 0x27,
    op_bra = 0x28,
    op_eq = 0x29,
    op_ge = 0x2a,
    op_gt = 0x2b,
    op_le = 0x2c,
    op_lt = 0x2d,
    op_ne = 0x2e,
    op_skip = 0x2f,
    op_lit0 = 0x30,
    op_lit31 = 0x4f,
    op_reg0 = 0x50,
    op_reg31 = 0x6f,
    op_breg0 = 0x70,
    op_breg31 = 0x8f,
    op_regx = 0x90,
    op_bregx = 0x92,
    op_deref_size = 0x94,
    op_nop = 0x96,
  };

 public:
  evaluator(std::span<const std::byte> code, const registers& r, const stack_copy& copy) noexcept
      : all_(code),
        code_(code, 0),
        registers_(r),
        copy_(copy) {}

  [[nodiscard]] bool run(std::uintptr_t start, std::uintptr_t& result) noexcept {
    push(start);
    for (int steps = 0; !code_.is_at_end(); ++steps) {
      if (steps == most_steps) return false;  // a loop of garbage; real expressions have ten
      perform(code_.fixed<std::uint8_t>());
      if (failed_ || code_.has_failed()) return false;
    }
    result = pop();
    return !failed_;
  }

 private:
  static constexpr int most_steps = 1000;

  void perform(std::uint8_t op) noexcept {
    if (op >= op_lit0 && op <= op_lit31) return push(op - op_lit0);
    if (op >= op_reg0 && op <= op_reg31) return push_register(op - op_reg0, 0);
    if (op >= op_breg0 && op <= op_breg31) return push_register(op - op_breg0, code_.sleb());
    if (op >= op_and && op <= op_xor && op != op_neg && op != op_not && op != op_plus_uconst) return arithmetic(op);
    if (op >= op_eq && op <= op_ne) return comparison(op);
    if (op >= op_dup && op <= op_rot) return arrangement(op);
    switch (op) {
      case op_nop: return;
      case op_addr:
      case op_const8u:
      case op_const8s: return push(code_.fixed<std::uint64_t>());
      case op_const1u: return push(code_.fixed<std::uint8_t>());
      case op_const1s: return push_signed(code_.fixed<std::int8_t>());
      case op_const2u: return push(code_.fixed<std::uint16_t>());
      case op_const2s: return push_signed(code_.fixed<std::int16_t>());
      case op_const4u: return push(code_.fixed<std::uint32_t>());
      case op_const4s: return push_signed(code_.fixed<std::int32_t>());
      case op_constu: return push(code_.uleb());
      case op_consts: return push_signed(code_.sleb());
      case op_regx: return push_register(code_.uleb(), 0);
      case op_bregx: {
        const auto number = code_.uleb();
        return push_register(number, code_.sleb());
      }
      case op_deref: return dereference(sizeof(std::uintptr_t));
      case op_deref_size: return dereference(code_.fixed<std::uint8_t>());
      case op_abs: {
        const auto v = pop();
        return push(v >> 63 != 0 ? 0 - v : v);
      }
      case op_neg: return push(0 - pop());
      case op_not: return push(~pop());
      case op_plus_uconst: return push(pop() + code_.uleb());
      case op_skip: return jump(code_.fixed<std::int16_t>());
      case op_bra: {
        const auto offset = code_.fixed<std::int16_t>();
        if (pop() != 0) jump(offset);
        return;
      }
      default: failed_ = true;
    }
  }

  void arithmetic(std::uint8_t op) noexcept {
    const std::uint64_t b = pop(), a = pop();
    const auto sa = static_cast<std::int64_t>(a), sb = static_cast<std::int64_t>(b);
    switch (op) {
      case op_and: return push(a & b);
      case op_or: return push(a | b);
      case op_xor: return push(a ^ b);
      case op_plus: return push(a + b);
      case op_minus: return push(a - b);
      case op_mul: return push(a * b);
      case op_shl: return push(b < 64 ? a << b : 0);
      case op_shr: return push(b < 64 ? a >> b : 0);
      case op_shra: return push_signed(sa >> (b < 64 ? b : 63));
      case op_mod:
        if (b == 0) break;
        return push(a % b);
      case op_div:
        if (b == 0) break;
        return sb == -1 ? push(0 - a) : push_signed(sa / sb);  // the smallest number divided by -1 would trap
      default: break;
    }
    failed_ = true;
  }

  void comparison(std::uint8_t op) noexcept {
    const auto b = static_cast<std::int64_t>(pop()), a = static_cast<std::int64_t>(pop());
    switch (op) {
      case op_eq: return push(a == b);
      case op_ge: return push(a >= b);
      case op_gt: return push(a > b);
      case op_le: return push(a <= b);
      case op_lt: return push(a < b);
      default: return push(a != b);
    }
  }

  void arrangement(std::uint8_t op) noexcept {
    switch (op) {
      case op_dup: return pick(0);
      case op_drop: return static_cast<void>(pop());
      case op_over: return pick(1);
      case op_pick: return pick(code_.fixed<std::uint8_t>());
      case op_swap: {
        const auto a = pop(), b = pop();
        push(a);
        return push(b);
      }
      default: {  // rot
        const auto a = pop(), b = pop(), c = pop();
        push(a);
        push(c);
        return push(b);
      }
    }
  }

  void push(std::uint64_t v) noexcept {
    if (depth_ == std::size(stack_)) {
      failed_ = true;
    } else {
      stack_[depth_++] = v;
    }
  }
  void push_signed(std::int64_t v) noexcept { push(static_cast<std::uint64_t>(v)); }
  std::uint64_t pop() noexcept {
    if (depth_ > 0) return stack_[--depth_];
    failed_ = true;
    return 0;
  }
  void pick(std::size_t below) noexcept {
    if (below < depth_) {
      push(stack_[depth_ - 1 - below]);
    } else {
      failed_ = true;
    }
  }
  void push_register(std::uint64_t number, std::int64_t offset) noexcept {
    if (number >= machine::registers || !registers_.knows(number)) {
      failed_ = true;
    } else {
      push(registers_.value[number] + static_cast<std::uint64_t>(offset));
    }
  }
  void dereference(std::size_t size) noexcept {
    std::uint64_t v = 0;
    const std::uintptr_t from = pop() - copy_.address;
    if (size > sizeof v || from > copy_.bytes.size() || copy_.bytes.size() - from < size) {
      failed_ = true;
      return;
    }
    std::memcpy(&v, copy_.bytes.data() + from, size);
    push(v);
  }
  void jump(std::int64_t offset) noexcept {
    const auto to = static_cast<std::int64_t>(code_.address()) + offset;  // the reader's address is 0 at the beginning
    code_ = byte_reader(all_, 0);
    code_.skip(static_cast<std::uint64_t>(to));
  }

  const std::span<const std::byte> all_;
  byte_reader code_;
  const registers& registers_;
  const stack_copy& copy_;
  std::uint64_t stack_[64];
  std::size_t depth_ = 0;
  bool failed_ = false;
};

}  // namespace

bool evaluate(std::span<const std::byte> code, const registers& r, const stack_copy& copy, std::uintptr_t start,
              std::uintptr_t& result) noexcept {
  return evaluator(code, r, copy).run(start, result);
}

}  // namespace weft::inline v1::observe
