// ctest: noasan notsan
// Unwinding allocates nothing, as malloc may be locked in a process of which somebody wants to know why it hangs.
#include <gtest/gtest.h>

#include "observe/stacks.hpp"
#include "support/usual.hpp"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {
thread_local bool counts = false;
thread_local std::size_t allocations = 0;
}  // namespace

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);

void* malloc(std::size_t size) {
  if (counts) ++allocations;
  return __libc_malloc(size);
}
void* calloc(std::size_t n, std::size_t size) {
  if (counts) ++allocations;
  return __libc_calloc(n, size);
}
void* realloc(void* p, std::size_t size) {
  if (counts) ++allocations;
  return __libc_realloc(p, size);
}
}

namespace {

using namespace support::usual;
using namespace weft::observe;

// req: OB-1
TEST(UnwindMemory, unwinding_does_not_allocate) {
  support::watchdog guard(60s, "unwinding");
  watched_runtime rt(1);
  weft::event done;
  auto waiter = rt->spawn([&] { done.wait(); });
  until([&] { return support::parked_tasks(rt.core()) == 1; });
  rt.core().records().walk([&](const weft::task::record& t) {
    if (!support::is_parked(&t)) return;
    const weft_test::copied_stack copy(weft::task::as_fiber(t));
    frame found[most_frames];
    counts = true;
    static_cast<void>(*new volatile char);  // it would be seen
    const std::size_t seen = std::exchange(allocations, 0);
    const std::size_t frames =
        unwind(copy.view(), saved_by_switch(copy.view()), found);  // the first, with an empty cache
    counts = false;
    EXPECT_EQ(seen, 1u);
    EXPECT_EQ(allocations, 0u);
#if !defined(WEFT_BOOST_SWITCH)
    EXPECT_GE(frames, 4u);
#else
    EXPECT_EQ(frames, 0u) << "that switch does not tell where registers are";
#endif
  });
  done.set();
  waiter.join();
}

}  // namespace
#endif
