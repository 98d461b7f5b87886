// The workloads over code that keeps its thread; bench/peers/README.md defines them.
#pragma once

#include "peer.hpp"

namespace weft_bench {

peer::Result hog_latency(int workers, peer::u64 n);
peer::u64 dispatch_hop(peer::u64 n);
peer::u64 blocking_call(peer::u64 n);

}  // namespace weft_bench
