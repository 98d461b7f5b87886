// Concurrency tests run at these worker counts.
#pragma once

#include <cstddef>

#include <gtest/gtest.h>

namespace support {

inline constexpr std::size_t worker_counts[] = {1, 2, 4, 8};

// Runs test(workers) for each of them; a failure says for which.
template <class Test>
void at_worker_counts(Test&& test) {
  for (const std::size_t workers : worker_counts) {
    SCOPED_TRACE(testing::Message() << workers << " workers");
    test(workers);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace support
