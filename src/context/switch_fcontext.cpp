// The same seam on Boost.Context, for other architectures and for comparison (-DWEFT_BOOST_SWITCH=1).
#include "context/switch.hpp"

#if defined(WEFT_BOOST_SWITCH)
#include <boost/context/detail/fcontext.hpp>
#include <cfenv>
#include <cstdlib>

namespace weft::inline v1::context {
namespace {

namespace fcontext = boost::context::detail;

// fcontext tells the one jumped *to* where its predecessor stopped; our callers want it in a place of their own. So the
// message names that place, and whoever arrives fills it in.
struct message {
  void** from_sp;
  void* content;
};

void* receive(fcontext::transfer_t t) noexcept {
  const message m = *static_cast<message*>(t.data);
  *m.from_sp = t.fctx;
  return m.content;
}

// First entered by prepare(), only to learn the entry function; entered for good by the first jump.
__attribute__((no_sanitize("address", "thread"))) void start(fcontext::transfer_t t) {
  const auto e = *static_cast<entry*>(t.data);
  void* first_arg = receive(fcontext::jump_fcontext(t.fctx, nullptr));
  reset_control_words();  // make_fcontext took those of whoever called prepare()
  e(first_arg);
  std::abort();
}

}  // namespace

void* jump(void** from_sp, void* to_sp, void* arg) noexcept {
  message m{from_sp, arg};
  return receive(fcontext::jump_fcontext(to_sp, &m));
}

void* prepare(void* stack_top, entry e) noexcept {
  // The size is only a hint of where the stack ends; fcontext never looks at it.
  void* fresh = fcontext::make_fcontext(stack_top, 4096, start);
  return fcontext::jump_fcontext(fresh, &e).fctx;
}

void reset_control_words() noexcept { std::fesetenv(FE_DFL_ENV); }

resume_point where(const void*) noexcept { return {nullptr, nullptr}; }

}  // namespace weft::inline v1::context
#endif
