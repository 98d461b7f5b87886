// How long a spawned task waits for its turn; bench/peers/README.md defines it.
#pragma once

#include "peer.hpp"

namespace weft_bench {

peer::Result accept_backlog(peer::u64 acceptors);

}  // namespace weft_bench
