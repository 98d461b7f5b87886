#include "task/locals.hpp"

#include <new>
#include <utility>

namespace weft::inline v1::task {

void share_locals(const record& from, record& to) noexcept {
  to.locals() = from.locals();
  to.locals()->references.fetch_add(1, base::relaxed);
  to.extras |= has_locals;
}

void release_locals(record& t) noexcept {
  t.extras &= static_cast<extra>(~has_locals);
  drop_binding(std::exchange(t.locals(), nullptr));
}

void drop_binding(local_binding* b) noexcept {
  // acq_rel: whoever destroys the value has seen what the others did with it.
  while (b != nullptr && b->references.fetch_sub(1, base::acq_rel) == 1) {
    local_binding* outer = b->outer;
    if (b->destroy != nullptr) b->destroy(b->value());
    const std::align_val_t alignment{b->alignment};
    b->~local_binding();
    ::operator delete(b, alignment);
    b = outer;
  }
}

}  // namespace weft::inline v1::task
