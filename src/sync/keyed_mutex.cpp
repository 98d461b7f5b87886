// Counts the users of a key, under the table's lock. An entry is in the table as long as anybody uses its key.
#include <weft/keyed_mutex.hpp>

#include "base/mutation.hpp"

namespace weft::inline v1::locks {

void key_entry::enter() noexcept {
  base::step<"keyed.enter">([&] { ++users; });
}
bool key_entry::leave() noexcept { return base::check<"keyed.leave">(--users == 0); }

}  // namespace weft::inline v1::locks
