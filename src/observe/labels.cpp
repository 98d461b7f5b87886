#include "observe/labels.hpp"

#include <cstdint>
#include <map>
#include <utility>

#include "base/lock.hpp"
#include <weft/observe.hpp>

namespace weft::inline v1 {
namespace {

// The lock is held for a few instructions and a node of the map at most, and by nobody who waits for anything else.
constinit base::lock table_lock;

struct entry {
  std::size_t size;
  std::string name;
};
using table = std::map<std::uintptr_t, entry>;
// Never destroyed: labels may be variables that are destroyed later than any other.
table& all() {
  static auto* const made = new table;
  return *made;
}

}  // namespace

label::label(const void* object, std::size_t size, std::string_view name) : object_(object) {
  entry e{size, std::string(name)};
  base::lock_guard guard(table_lock);
  all().insert_or_assign(reinterpret_cast<std::uintptr_t>(object), std::move(e));
}

label::~label() {
  base::lock_guard guard(table_lock);
  all().erase(reinterpret_cast<std::uintptr_t>(object_));
}

// A waiter names the core of an object, which may lie inside it.
std::string observe::label_of_object(const void* object) {
  const auto at = reinterpret_cast<std::uintptr_t>(object);
  base::lock_guard guard(table_lock);
  auto after = all().upper_bound(at);
  if (after == all().begin()) return {};
  --after;
  return at - after->first < after->second.size ? after->second.name : std::string();
}

}  // namespace weft::inline v1
