// What a channel must do for one sender or two and a receiver, whatever its kind: for channel_test and contended_test.
#pragma once

#include "channel.hpp"

namespace model {

// One sends 1 and 2, another receives until closed: everything arrives, in order.
inline void a_pair(std::size_t capacity, path p) {
  channel c(capacity, p);
  fiber sender([&] {
    model_assert(c.send(1) == status::done);
    model_assert(c.send(2) == status::done);
    c.close();
  });
  fiber receiver([&] {
    model_assert(c.receive() == 1);
    model_assert(c.receive() == 2);
    model_assert(c.receive() == 0);
  });
  explore::join_all();
  model_assert(c.nobody_waits());
}

inline void two_senders(std::size_t capacity, path p) {
  channel c(capacity, p);
  fiber first([&] { model_assert(c.send(1) == status::done); });
  fiber second([&] { model_assert(c.send(2) == status::done); });
  fiber receiver([&] {
    const u64 a = c.receive();
    const u64 b = c.receive();
    model_assert(a + b == 3 && a != b);
  });
  explore::join_all();
  model_assert(c.nobody_waits());
}

}  // namespace model
