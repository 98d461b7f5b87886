// Weft: ordinary functions as millions of fibers on a few threads. Includes everything.
#pragma once

#include <weft/broadcast.hpp>
#include <weft/cancelled.hpp>
#include <weft/channel.hpp>
#include <weft/errors.hpp>
#include <weft/join_handle.hpp>
#include <weft/oneshot.hpp>
#include <weft/runtime.hpp>
#include <weft/select.hpp>
#include <weft/stream.hpp>
#include <weft/this_task.hpp>
#include <weft/timer.hpp>
#include <weft/version.hpp>
#include <weft/watch.hpp>
