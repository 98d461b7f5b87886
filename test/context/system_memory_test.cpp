// The calls to the system: what they say when they fail, and that errno stays the caller's.
#include "context/system_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>

namespace {

using namespace weft::context;

// Whoever needs a stack or a record may be in the middle of something that looks at errno afterwards.
// req: W-9
TEST(SystemMemory, a_call_that_fails_leaves_errno_alone) {
  const system_memory& memory = real_memory();
  int local = 0;
  void* const unaligned = &local;
  const std::size_t page = page_size();
  const memory_range nothing_mapped{nullptr, page};
  errno = 4711;
  EXPECT_EQ(memory.map(SIZE_MAX / 2 / page * page), nullptr);
  EXPECT_EQ(errno, 4711);
  EXPECT_EQ(memory.unmap(unaligned, page), EINVAL);
  EXPECT_EQ(errno, 4711);
  EXPECT_EQ(memory.advise(unaligned, page, MADV_DONTNEED), EINVAL);
  EXPECT_EQ(errno, 4711);
  EXPECT_EQ(memory.advise_many(&nothing_mapped, 1, MADV_DONTNEED), 0u);
  EXPECT_EQ(errno, 4711);
  EXPECT_EQ(memory.protect(unaligned, page, PROT_READ), EINVAL);
  EXPECT_EQ(errno, 4711);
}

// The first ranges take it, up to the first that cannot.
// req: W-9
TEST(SystemMemory, advice_for_many_ranges_says_how_many_have_taken_it) {
  const system_memory& memory = real_memory();
  const std::size_t page = page_size();
  auto* const at = static_cast<std::byte*>(memory.map(4 * page));
  ASSERT_NE(at, nullptr);
  const memory_range mapped[] = {{at, page}, {at + page, 2 * page}, {at + 3 * page, page}};
  if (memory.advise_many(mapped, 1, MADV_POPULATE_WRITE) == 0) GTEST_SKIP() << "this kernel has no such call";
  EXPECT_EQ(memory.advise_many(mapped, 3, MADV_POPULATE_WRITE), 3u);
  EXPECT_EQ(memory.advise_many(mapped, 2, MADV_POPULATE_WRITE), 2u);
  const memory_range with_a_hole[] = {{at, page}, {at + page, 2 * page}, {nullptr, page}, {at + 3 * page, page}};
  EXPECT_EQ(memory.advise_many(with_a_hole, 4, MADV_POPULATE_WRITE), 2u);
  EXPECT_EQ(memory.unmap(at, 4 * page), 0);
}

}  // namespace
