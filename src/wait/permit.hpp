// park_if and unpark: for people who build their own primitives.
#pragma once

#include <source_location>

#include "task/task.hpp"

namespace weft::inline v1::waits {

// Parks the running task unless it has a permit or `still(context)` is false. Takes the permit that ends the wait.
// A cancellation point. The condition is asked once before and once after the task has become visible as PARKING, so a change
// followed by unpark() is never missed.
void park_if(bool (*still)(const void* context), const void* context, std::source_location where);

// Gives the task a permit and wakes it if it is in park_if. Other waits are not disturbed. Any thread; needs a reference.
void unpark(task::record& t) noexcept;

}  // namespace weft::inline v1::waits
