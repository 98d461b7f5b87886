#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <algorithm>

#include "context/overflow.hpp"
#include "context/system_memory.hpp"

namespace weft::inline v1::context {
namespace {

// The handler needs little stack, the unwinder and dladdr under it more, and a sanitizer's report most. The kernel's
// own frame can take several KiB with AVX-512 (AT_MINSIGSTKSZ).
std::size_t usable_size() noexcept {
  return round_to_pages(std::max<std::size_t>(64 << 10, ::getauxval(AT_MINSIGSTKSZ) + (32 << 10)));
}

}  // namespace

alternate_signal_stack::alternate_signal_stack() noexcept {
  const std::size_t size = usable_size();
  auto* at = static_cast<char*>(memory().map(page_size() + size));
  if (at == nullptr) return;
  memory().protect(at, page_size(), PROT_NONE);  // an extra guard; no reason to fail if it is refused
  stack_t ours{};
  ours.ss_sp = at + page_size();
  ours.ss_size = size;
  stack_t before{};
  if (::sigaltstack(&ours, &before) != 0) {
    memory().unmap(at, page_size() + size);
    return;
  }
  memory_ = at;
  before_ = before.ss_sp;
  before_size_ = before.ss_size;
  before_flags_ = before.ss_flags;
}

alternate_signal_stack::~alternate_signal_stack() {
  if (memory_ == nullptr) return;
  stack_t before{};
  before.ss_sp = before_;
  before.ss_size = before_size_;
  before.ss_flags = before_flags_ & SS_DISABLE;
  ::sigaltstack(&before, nullptr);
  memory().unmap(memory_, page_size() + usable_size());
}

}  // namespace weft::inline v1::context
