// Why does it hang? What every task of a runtime waits for, told by the program itself.
//
//   rt.dump(std::cerr);                                     // all tasks, equal ones together, with their stacks
//   std::cerr << weft::why(task.ref());                     // one task, and along the chain of who waits for whom
//   weft::label name(accounts, "accounts");                 // reports call this object by that name from now on
//
// Whoever observes only reads: no task waits for a dump, and a dump waits for no task. So it works from any thread, at
// any time, also when every worker is stuck. docs/debugging.md shows what it prints, and the environment variables
// WEFT_DUMP_SIGNAL and WEFT_DUMP_IF_STUCK, which need no change of the program.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <weft/detail/config.hpp>
#include <weft/join_handle.hpp>

namespace weft::inline v1 {

enum class dump_form : unsigned char {
  groups,  // tasks with the same stack that wait for the same thing are one entry
  tasks,  // one entry for each task
  tree,  // by scope: who has spawned whom
  json,  // for programs; docs/debugging.md describes it
};

// Why a task does not run, or where it runs. A line for the task, and one for each further task along the chain of
// those that hold what the one before waits for. The chain ends with a task that is not known to wait for a certain
// other one.
[[nodiscard]] WEFT_API std::string why(const task_ref& task);

// Gives an object a name for dumps and other reports, for as long as this lives: a mutex, a semaphore, an event and so
// on, or either end of a channel.
class WEFT_API label {
 public:
  template <class Object>
  label(const Object& object, std::string_view name) : label(address_of(object), sizeof(Object), name) {}
  label(const label&) = delete;
  label& operator=(const label&) = delete;
  ~label();

 private:
  label(const void* object, std::size_t size, std::string_view name);
  // Both ends of a channel stand for the channel.
  template <class Object>
  static const void* address_of(const Object& object) noexcept {
    if constexpr (requires { labelled_object(object); })
      return labelled_object(object);
    else
      return std::addressof(object);
  }
  const void* object_;
};

}  // namespace weft::inline v1
