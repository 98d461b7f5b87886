// Weft: ordinary functions as millions of fibers on a few threads. Includes everything.
#pragma once

#include <weft/barrier.hpp>
#include <weft/broadcast.hpp>
#include <weft/cancelled.hpp>
#include <weft/channel.hpp>
#include <weft/condition_variable.hpp>
#include <weft/errors.hpp>
#include <weft/event.hpp>
#include <weft/join_handle.hpp>
#include <weft/keyed_mutex.hpp>
#include <weft/latch.hpp>
#include <weft/mutex.hpp>
#include <weft/notify.hpp>
#include <weft/once.hpp>
#include <weft/oneshot.hpp>
#include <weft/runtime.hpp>
#include <weft/select.hpp>
#include <weft/semaphore.hpp>
#include <weft/shared_mutex.hpp>
#include <weft/stream.hpp>
#include <weft/this_task.hpp>
#include <weft/timer.hpp>
#include <weft/version.hpp>
#include <weft/watch.hpp>
