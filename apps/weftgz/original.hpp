// The files that were asked for, and whether they may be worked on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/stat.h>

#include <weft/fs.hpp>

#include <weftgz/run_state.hpp>

namespace weftgz {

struct item {
  std::string path;
  bool found = false;  // by -r, not named by the user: what does not concern us is passed over in silence
};

// The files of the command line, with -r those in directories. They are all found before the first is worked on, because
// the work puts new files there.
[[nodiscard]] std::vector<item> items_of(run_state& run);

struct original {
  std::string path;  // as it was found: perhaps with the suffix that the user left out
  weft::fs::file file;
  struct stat info = {};
};

// Nothing if it cannot or may not be worked on, which has been reported.
[[nodiscard]] std::optional<original> open_original(const item& i, run_state& run);

}  // namespace weftgz
