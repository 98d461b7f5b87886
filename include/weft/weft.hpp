// Weft runs ordinary functions as millions of fibers on a few threads. This header includes everything but input and
// output, which are <weft/net.hpp>, <weft/fs.hpp>, <weft/text.hpp>, <weft/pipe.hpp>, <weft/stdio.hpp>,
// <weft/process.hpp> and <weft/signals.hpp>.
#pragma once

#include <weft/barrier.hpp>
#include <weft/broadcast.hpp>
#include <weft/cancelled.hpp>
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/condition_variable.hpp>
#include <weft/dispatcher.hpp>
#include <weft/errors.hpp>
#include <weft/event.hpp>
#include <weft/join_handle.hpp>
#include <weft/keyed_mutex.hpp>
#include <weft/latch.hpp>
#include <weft/mutex.hpp>
#include <weft/notify.hpp>
#include <weft/observe.hpp>
#include <weft/once.hpp>
#include <weft/oneshot.hpp>
#include <weft/recv_result.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/semaphore.hpp>
#include <weft/shared_mutex.hpp>
#include <weft/stop_token.hpp>
#include <weft/stream.hpp>
#include <weft/supervised.hpp>
#include <weft/task_group.hpp>
#include <weft/task_local.hpp>
#include <weft/task_status.hpp>
#include <weft/this_task.hpp>
#include <weft/timer.hpp>
#include <weft/version.hpp>
#include <weft/watch.hpp>
