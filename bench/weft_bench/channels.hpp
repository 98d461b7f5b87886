// The workloads over channels; bench/peers/README.md defines them.
#pragma once

#include "peer.hpp"

namespace weft_bench {

peer::u64 pingpong(peer::u64 n);
peer::u64 producers_consumers(peer::u64 producers, peer::u64 consumers, peer::u64 n);
peer::u64 select_from(peer::u64 capacity, peer::u64 n);
peer::u64 ring(peer::u64 n);
peer::Result prime_sieve(peer::u64 n);

}  // namespace weft_bench
