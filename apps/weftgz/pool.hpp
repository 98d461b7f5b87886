// A fixed number of things that tasks take in turns. Whoever wants one while all are taken waits. A pool is a channel
// that is full of them.
#pragma once

#include <cstddef>
#include <memory>

#include <weft/channel.hpp>

namespace weftgz {

template <class T>
class pool {
 public:
  explicit pool(std::size_t size) : free_(weft::make_channel<std::unique_ptr<T>>(size)) {
    for (std::size_t i = 0; i < size; ++i) (void)free_.out.try_send(std::make_unique<T>());
  }

  struct give_back {
    pool* to = nullptr;
    // There is always room, so this never waits and may be called while a task is cancelled.
    void operator()(T* t) const { (void)to->free_.out.try_send(std::unique_ptr<T>(t)); }
  };
  using taken = std::unique_ptr<T, give_back>;  // must not outlive the pool

  // A cancellation point.
  [[nodiscard]] taken take() { return taken(free_.in.recv().value().release(), give_back{this}); }

 private:
  weft::channel_ends<std::unique_ptr<T>> free_;
};

}  // namespace weftgz
