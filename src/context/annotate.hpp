// The switch that upper layers use: a jump that is announced to the sanitizers. In plain builds a flow is empty and
// switch_flow is jump.
//
// context.I3. Every switch, first entry and end of a flow is announced to the sanitizers.
//                                                                test context/annotate_* (in the asan and tsan builds)
#pragma once

#include "context/annotate_asan.hpp"
#include "context/annotate_tsan.hpp"
#include "context/switch.hpp"

namespace weft::inline v1::context {

struct stack;

// What the sanitizers know of a flow. There is one for each flow, beside its saved stack pointer. It is not
// thread-safe: it belongs to whoever may resume the flow.
class flow {
 public:
  // Makes this the flow of the calling thread on its own stack (a worker that switches to tasks and back).
  void adopt_thread() noexcept {
    asan_.adopt_thread();
    tsan_.adopt_thread();
  }
  // Makes this a fresh flow, which the next switch starts on that stack.
  void start_on(const stack& s) noexcept;
  // Called when the flow has switched away for the last time (from_dies). Another flow calls it, before the stack is
  // used again.
  void end() noexcept {
    asan_.end();
    tsan_.end();
  }

 private:
  friend void* switch_flow(void** from_sp, flow& from, void* to_sp, flow& to, void* arg, bool from_dies) noexcept;
  friend void entered(flow& self) noexcept;

  [[no_unique_address]] asan_flow asan_;
  [[no_unique_address]] tsan_flow tsan_;
};

// jump(from_sp, to_sp, arg), announced. `from_dies` means that nobody will switch back.
inline void* switch_flow(void** from_sp, flow& from, void* to_sp, flow& to, void* arg,
                         bool from_dies = false) noexcept {
  from.asan_.leave_for(to.asan_, from_dies);
  from.tsan_.leave_for(to.tsan_);  // last, because from here on TSan counts every access for `to`
  void* handed_over = jump(from_sp, to_sp, arg);
  from.asan_.arrived();
  return handed_over;
}

// An entry function calls this first.
inline void entered(flow& self) noexcept { self.asan_.arrived(); }

}  // namespace weft::inline v1::context
