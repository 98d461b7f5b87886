#include <weftgz/report.hpp>

#include <cstdio>

#include <weftgz/progress.hpp>

namespace weftgz {

void report::print(const std::string& line) {
  clear_progress();
  std::fputs(line.c_str(), stderr);
}

}  // namespace weftgz
