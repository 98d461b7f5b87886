// A table of memory calls in which a chosen call fails, and which keeps count of what is mapped.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>

#include "base/atomic.hpp"
#include "context/system_memory.hpp"

namespace weft_test {

namespace context = weft::context;

struct failing_memory {
  static inline weft::base::atomic<long> calls{0};
  static inline weft::base::atomic<long> fail_at{-1};  // the n-th call from 0; -1 none
  static inline weft::base::atomic<bool> fail_all_maps{false};
  static inline weft::base::atomic<bool> fail_unmap{false};
  static inline weft::base::atomic<bool> no_guard_install{false};  // a kernel before 6.13
  static inline weft::base::atomic<long> guard_installs{0};
  static inline weft::base::atomic<long> mapped{0};  // bytes
  static inline void (*before_unmap)() = nullptr;    // what another thread might do just then

  static bool fails() { return calls.fetch_add(1) == fail_at.load(); }

  static void* map(std::size_t size) noexcept {
    if (fails() || fail_all_maps) return nullptr;
    void* at = context::real_memory().map(size);
    if (at != nullptr) mapped += static_cast<long>(size);
    return at;
  }
  // Never by number: a process that cannot unmap cannot but leak.
  static int unmap(void* begin, std::size_t size) noexcept {
    if (before_unmap != nullptr) before_unmap();
    if (fail_unmap) return ENOMEM;
    mapped -= static_cast<long>(size);
    return context::real_memory().unmap(begin, size);
  }
  static int advise(void* begin, std::size_t size, int advice) noexcept {
    if (advice == context::madv_guard_install) {
      if (no_guard_install) return EINVAL;
      ++guard_installs;
    }
    return fails() ? ENOMEM : context::real_memory().advise(begin, size, advice);
  }
  static std::size_t advise_many(const context::memory_range* ranges, std::size_t count, int advice) noexcept {
    if (fails() || no_guard_install) return 0;
    if (advice == context::madv_guard_install) guard_installs += static_cast<long>(count);
    return context::real_memory().advise_many(ranges, count, advice);
  }
  static int protect(void* begin, std::size_t size, int protection) noexcept {
    return fails() ? ENOMEM : context::real_memory().protect(begin, size, protection);
  }

  static inline const context::system_memory table{map, unmap, advise, advise_many, protect};

  failing_memory() : replaced_(table) {
    calls = 0;
    fail_at = -1;
    guard_installs = 0;
    mapped = 0;
    fail_all_maps = fail_unmap = no_guard_install = false;
    before_unmap = nullptr;
  }

 private:
  context::replace_system_memory replaced_;
};

}  // namespace weft_test
