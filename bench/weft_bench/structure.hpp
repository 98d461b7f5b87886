// The workloads over scopes and cancellation; bench/peers/README.md defines them.
#pragma once

#include "peer.hpp"

namespace weft_bench {

peer::u64 scope_spawn(peer::u64 n);
peer::Result cancel_tree(peer::u64 n);
peer::Result cancel_check(peer::u64 n);

}  // namespace weft_bench
