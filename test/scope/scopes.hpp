// What the tests of scopes and task groups share.
#pragma once

#include <exception>
#include <string>

#include "support/usual.hpp"

namespace scope_test {

using namespace support::usual;

template <class F>
std::string what_it_throws(F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  } catch (const weft::cancelled&) {
    return "cancelled";
  }
  return "";
}

// Counts that it was left.
struct tally {
  base::atomic<int>& count;
  ~tally() { ++count; }
};

// Waits to be cancelled, and takes its time to end.
inline void end_slowly(base::atomic<int>& ended) {
  try {
    wait_for_ever();
  } catch (const weft::cancelled&) {
    const weft::this_task::shield held;
    for (int i = 0; i < 5; ++i) weft::yield();
    ++ended;
    throw;
  }
}

}  // namespace scope_test
