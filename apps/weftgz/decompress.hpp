// reader → scanner → writer. The scanner finds the members. One whose header says how long it is goes to the crew as a
// whole, and many are inflated at the same time; any other is inflated by the scanner itself, while the reader reads
// ahead and the writer checks and writes what is behind.
#pragma once

#include <weftgz/compress.hpp>
#include <weftgz/ends.hpp>
#include <weftgz/shop.hpp>

namespace weftgz {

struct decompression {
  bool copy_others = false;  // input that is not gzip's is copied as it is (-dcf)
};

struct decompressed : totals {
  bool garbage = false;  // behind the last member stood something else, which was ignored
  std::uint32_t crc = 0;  // of everything
};

// Throws bad_input and io_failure. What stands before the fault was written then. A cancellation point.
decompressed decompress(source& in, sink& out, const decompression& how, shop& with);

}  // namespace weftgz
