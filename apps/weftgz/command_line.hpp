// The command line: gzip's and pigz's for everyday use.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <weftgz/deflate.hpp>

namespace weftgz {

enum class mode { compress, decompress, test, list };

struct options {
  weftgz::mode mode = mode::compress;
  bool to_stdout = false, keep = false, force = false, recursive = false, quiet = false, single = false,
       independent = false, progress = false, statistics = false;
  int verbose = 0;
  // Of the header: stored when compressing unless -n, restored when decompressing only with -N.
  bool no_name = false, name = false;
  int level = 6;
  std::size_t processors = 0;  // 0: as many as there are
  std::size_t block_size = 0;  // 0: what suits the level
  std::string suffix = ".gz";
  std::vector<std::string> files;  // none: from stdin to stdout

  [[nodiscard]] std::size_t size_of_blocks() const noexcept {
    return block_size != 0 ? block_size : usual_block_size(level, single);
  }
  // True if each result is a file of its own.
  [[nodiscard]] bool writes_files() const noexcept {
    return !to_stdout && (mode == mode::compress || mode == mode::decompress);
  }
};

// Prints help or version, and what is wrong, and leaves the process then.
[[nodiscard]] options parse_command_line(int argc, char** argv);

}  // namespace weftgz
