// The same functions on top of Boost.Context, for other architectures and for comparison (-DWEFT_BOOST_SWITCH=1).
#include "context/switch.hpp"

#if defined(WEFT_BOOST_SWITCH)
#include <boost/context/detail/fcontext.hpp>
#include <cfenv>
#include <cstdlib>

namespace weft::inline v1::context {
namespace {

namespace fcontext = boost::context::detail;

// fcontext tells the flow that is jumped *to* where its predecessor stopped, but our callers want that in a place of
// their own. So the message names that place, and the flow that arrives fills it in.
struct message {
  void** from_sp;
  void* content;
};

void* receive(fcontext::transfer_t t) noexcept {
  const message m = *static_cast<message*>(t.data);
  *m.from_sp = t.fctx;
  return m.content;
}

// prepare() enters it once, only to pass the entry function. The first jump enters it for good.
__attribute__((no_sanitize("address", "thread"))) void start(fcontext::transfer_t t) {
  const auto e = *static_cast<entry*>(t.data);
  void* first_arg = receive(fcontext::jump_fcontext(t.fctx, nullptr));
  reset_control_words();  // make_fcontext took those of the caller of prepare()
  e(first_arg);
  std::abort();
}

}  // namespace

void* jump(void** from_sp, void* to_sp, void* arg) noexcept {
  message m{from_sp, arg};
  return receive(fcontext::jump_fcontext(to_sp, &m));
}

void* prepare(void* stack_top, entry e) noexcept {
  // The size is only a hint of where the stack ends; fcontext does not look at it.
  void* fresh = fcontext::make_fcontext(stack_top, 4096, start);
  return fcontext::jump_fcontext(fresh, &e).fctx;
}

void reset_control_words() noexcept { std::fesetenv(FE_DFL_ENV); }

resume_point where(const void*) noexcept { return {nullptr, nullptr}; }

}  // namespace weft::inline v1::context
#endif
