#include "context/annotate.hpp"

#include "context/stack.hpp"

#if defined(WEFT_ASAN)
#include <pthread.h>
#endif

namespace weft::inline v1::context {

void flow::start_on(const stack& s) noexcept {
  asan_.start_on(s.base, s.size);
  tsan_.start();
}

#if defined(WEFT_ASAN)
void asan_flow::adopt_thread() noexcept {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;  // ASan then merely warns about large frames
  void* bottom = nullptr;
  pthread_attr_getstack(&attributes, &bottom, &size_);
  pthread_attr_destroy(&attributes);
  bottom_ = bottom;
}
#endif

}  // namespace weft::inline v1::context
