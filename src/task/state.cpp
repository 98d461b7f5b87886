#include "task/state.hpp"

namespace weft::inline v1::task {

const char* name_of(phase p) noexcept {
  switch (p) {
    case phase::init: return "INIT";
    case phase::active: return "RUNNABLE/RUNNING";
    case phase::parking: return "PARKING";
    case phase::parked: return "PARKED";
    case phase::done: return "DONE";
    case phase::cancelled: return "CANCELLED";
  }
  return "?";
}

void illegal_transition(const char* from, const char* to) noexcept {
  base::failf("illegal task transition %s -> %s (docs/lifecycle.md, legality matrix)", from, to);
}

}  // namespace weft::inline v1::task
