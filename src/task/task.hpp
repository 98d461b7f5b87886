// A task: the record that queues hold (record.hpp), and the fiber on top of it (fiber.hpp). A file that uses tasks
// includes this one, because the functions of a record are complete only with the kinds.
#pragma once

#include "task/fiber.hpp"  // IWYU pragma: export
#include "task/record.hpp"  // IWYU pragma: export
