// What every part of a run needs to see.
#pragma once

#include <weft/mutex.hpp>

#include <weftgz/command_line.hpp>
#include <weftgz/progress.hpp>
#include <weftgz/report.hpp>
#include <weftgz/shop.hpp>

namespace weftgz {

struct run_state {
  const options& how;
  weftgz::shop& shop;
  weftgz::report& report;
  counters& count;
  weft::mutex asking = {};  // one question at a time on the terminal
};

}  // namespace weftgz
