// No memory for the record of a descriptor: the one who opened it is told, and no descriptor is left.
// ctest: notsan
#include <fcntl.h>
#include <unistd.h>

#include <vector>

#include "faults/failing_new.hpp"
#include "io/fd_record.hpp"
#include "support/process.hpp"
#include <weft/detail/fd_handle.hpp>

namespace {

namespace io = weft::io;

// req: W-9
TEST(Descriptors, a_record_that_cannot_be_had_closes_its_descriptor) {
  const std::size_t before = support::open_descriptors();
  {
    std::vector<io::fd_handle> taken;
    taken.reserve(100'000);
    // Records come in blocks, so many can be had without an allocation.
    const auto take_all = [&](int fd, io::fd_traits traits) {
      until_failure = 0;
      for (int i = 0; i < 100'000; ++i) taken.emplace_back(io::fd_record::take_over(fd, io::real_kernel(), traits));
    };
    EXPECT_THROW(take_all(STDERR_FILENO, {.borrowed = true}), std::bad_alloc);
    EXPECT_NE(::fcntl(STDERR_FILENO, F_GETFD), -1) << "a borrowed one belongs to somebody else";
    const int fd = ::dup(STDERR_FILENO);
    EXPECT_THROW(take_all(fd, {}), std::bad_alloc);
    EXPECT_EQ(::fcntl(fd, F_GETFD), -1) << "closed";
    EXPECT_NO_THROW(taken.emplace_back(io::fd_record::take_over(STDERR_FILENO, io::real_kernel(), {.borrowed = true})));
  }
  EXPECT_EQ(support::open_descriptors(), before);
}

}  // namespace
