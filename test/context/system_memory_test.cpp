// The calls to the system: what they say when they fail, and that errno stays the caller's.
#include "context/system_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>

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

}  // namespace
