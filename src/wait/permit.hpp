// park_if and unpark, for users who build primitives of their own.
#pragma once

#include <source_location>

#include "task/task.hpp"

namespace weft::inline v1::waits {

// Parks the running task unless it has a permit or `still(context)` is false. Takes the permit that ends the wait.
// A cancellation point. The condition is asked once before and once after the task has become visible as PARKING, so a
// change that is followed by unpark() is never missed.
void park_if(bool (*still)(const void* context), const void* context, std::source_location where);

// Gives the task a permit and wakes it if it is in park_if. Other waits are not disturbed. Any thread may call it, as
// long as it holds a reference to the task.
void unpark(task::record& t) noexcept;

}  // namespace weft::inline v1::waits
