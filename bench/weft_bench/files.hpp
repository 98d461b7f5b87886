// Files; bench/peers/README.md defines each bench.
#pragma once

#include "peer.hpp"

namespace weft_bench {

peer::u64 file_cached_4k(peer::u64 n);

}  // namespace weft_bench
