#include "io/fd_pool.hpp"

#include <new>

#include "io/fd_record.hpp"

namespace weft::inline v1::io {

fd_pool& all_fds() noexcept {
  static constinit fd_pool pool;
  return pool;
}

bool fd_pool::grow() noexcept {
  if (blocks_made_ == most_blocks) return false;
  auto* block = new (std::nothrow) fd_record[block_size];
  if (block == nullptr) return false;
  const std::size_t first = blocks_made_ * block_size;
  for (std::size_t i = block_size; i-- != 0;) {
    block[i].index_ = static_cast<std::uint32_t>(first + i);
    block[i].next_free_ = free_;
    free_ = &block[i];
  }
  blocks_[blocks_made_++].store(block, base::release);  // pairs with the acquire in at()
  return true;
}

fd_record* fd_pool::acquire() noexcept {
  base::lock_guard guard(lock_);
  if (free_ == nullptr && !grow()) return nullptr;
  fd_record* r = free_;
  free_ = r->next_free_;
  return r;
}

void fd_pool::release(fd_record& r) noexcept {
  base::lock_guard guard(lock_);
  r.next_free_ = free_;
  free_ = &r;
}

fd_record& fd_pool::at(std::uint32_t index) const noexcept {
  return blocks_[index / block_size].load(base::acquire)[index % block_size];
}

}  // namespace weft::inline v1::io
