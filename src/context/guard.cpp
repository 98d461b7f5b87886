#include "context/guard.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/check.hpp"
#include "context/overflow.hpp"
#include "context/stack.hpp"
#include "context/system_memory.hpp"
#include "context/valgrind.hpp"

namespace weft::inline v1::context {
namespace {

// All pools of the process share one vm.max_map_count.
constinit base::atomic<std::size_t> mprotect_guards{0};

std::size_t mprotect_budget() noexcept {
  static const std::size_t budget = [] {
    unsigned long mappings = 65530;  // the kernel's default
    if (std::FILE* f = std::fopen("/proc/sys/vm/max_map_count", "re")) {
      if (std::fscanf(f, "%lu", &mappings) != 1) mappings = 65530;
      std::fclose(f);
    }
    // A third is left to the rest of the process. Each guard splits one mapping into three, which is two more.
    return static_cast<std::size_t>(mappings) / 3 * 2 / 2;
  }();
  return budget;
}

guard_kind kind_from_environment() noexcept {
  const char* asked = std::getenv("WEFT_GUARD");
  if (asked == nullptr) return guard_kind::madvise;
  const std::string_view name = asked;
  if (name == "madvise") return guard_kind::madvise;
  if (name == "mprotect") return guard_kind::mprotect;
  if (name == "none") return guard_kind::none;
  static base::atomic<bool> said{false};
  if (!said.exchange(true, base::relaxed))
    std::fprintf(stderr, "weft: WEFT_GUARD=%s is none of madvise, mprotect, none; using madvise\n", asked);
  return guard_kind::madvise;
}

constexpr unsigned char canary_byte(std::size_t i) noexcept { return static_cast<unsigned char>(0xC5 ^ (i * 29)); }

}  // namespace

const char* name_of(guard_kind kind) noexcept {
  switch (kind) {
    case guard_kind::madvise: return "madvise";
    case guard_kind::mprotect: return "mprotect";
    case guard_kind::none: return "none";
  }
  return "?";
}

guard_keeper::guard_keeper(std::size_t guard_size, bool always_canary) noexcept
    : size_(guard_size),
      always_canary_(always_canary),
      vectored_(!running_on_valgrind()),
      kind_(kind_from_environment()) {}

void guard_keeper::protect_ahead(stack* chain) noexcept {
  if (!has_calls_for_many()) return;
  constexpr std::size_t most = 64;
  memory_range ranges[most];
  stack* whose[most];
  std::size_t count = 0;
  for (stack* s = chain; s != nullptr && count < most; s = s->next) {
    if (s->guard != guard_kind::none) continue;
    ranges[count] = {s->base - size_, size_};
    whose[count++] = s;
  }
  if (count < 2) return;
  const std::size_t done = memory().advise_many(ranges, count, madv_guard_install);
  if (done == 0) vectored_.store(false, base::relaxed);
  for (std::size_t i = 0; i < done && i < count; ++i) whose[i]->guard = guard_kind::madvise;
}

bool guard_keeper::protect(stack& s) noexcept {
  if (s.guard == guard_kind::none && kind() == guard_kind::madvise) {
    const int error = memory().advise(s.base - size_, size_, madv_guard_install);
    if (error == ENOMEM || error == EAGAIN) return false;
    if (error == 0)
      s.guard = guard_kind::madvise;
    else  // EINVAL: a kernel before 6.13, or memory locked by mlockall
      fall_back(guard_kind::mprotect, "the kernel has no MADV_GUARD_INSTALL (it needs Linux 6.13)");
  }
  if (s.guard == guard_kind::none && kind() == guard_kind::mprotect && by_mprotect(s)) s.guard = guard_kind::mprotect;
  s.canary = always_canary_ || s.guard == guard_kind::none;
  if (s.canary) write_canary(s);
  return true;
}

bool guard_keeper::by_mprotect(const stack& s) noexcept {
  if (mprotect_guards.fetch_add(1, base::relaxed) < mprotect_budget() &&
      memory().protect(s.base - size_, size_, PROT_NONE) == 0)
    return true;
  mprotect_guards.fetch_sub(1, base::relaxed);
  fall_back(guard_kind::none, "mprotect guards have used up their share of vm.max_map_count");
  return false;
}

void guard_keeper::forget(const stack& s) noexcept {
  if (s.guard == guard_kind::mprotect) mprotect_guards.fetch_sub(1, base::relaxed);
}

void guard_keeper::fall_back(guard_kind to, const char* why) noexcept {
  auto from = kind();
  if (from >= to || !kind_.compare_exchange_strong(from, to, base::relaxed)) return;
  static base::atomic<bool> said[3];
  if (said[static_cast<int>(to)].exchange(true, base::relaxed)) return;
  if (to == guard_kind::mprotect)
    std::fprintf(stderr, "weft: %s; stacks are guarded by mprotect, at most %zu of them\n", why, mprotect_budget());
  else
    std::fprintf(stderr,
                 "weft: %s; further stacks have no guard page, only a canary that is checked when they are released\n",
                 why);
}

void write_canary(stack& s) noexcept {
  for (std::size_t i = 0; i < canary_size; ++i) s.base[i] = std::byte{canary_byte(i)};
}

void check_canary(const stack& s) noexcept {
  if (!s.canary) return;
  for (std::size_t i = 0; i < canary_size; ++i)
    if (s.base[i] != std::byte{canary_byte(i)}) [[unlikely]] {
      char who[160];
      describe_owner(s, who, sizeof who);
      base::failf(
          "stack overflow in task %s: it wrote over the canary at the end of its stack of %zu KiB\n"
          "  give the task a larger stack: spawn(attributes{.stack_size = %zu}, ...)",
          who, s.size >> 10, s.size * 2);
    }
}

}  // namespace weft::inline v1::context
