// The benches of the sync layer (bench/peers/README.md defines each).
#pragma once

#include "peer.hpp"

namespace weft_bench {

peer::u64 mutex(peer::u64 n);
peer::u64 semaphore(peer::u64 n);
peer::u64 rwlock(peer::u64 n);

}  // namespace weft_bench
