#include "io/reactor.hpp"

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "io/fd_record.hpp"
#include "sched/scheduler.hpp"
#include <weft/runtime.hpp>

namespace weft::inline v1::sched {

namespace {

// What io_backend::automatic means. The batcher stays off until measurements in place say that it is never the slower
// one.
constexpr io_backend usual_backend = io_backend::epoll;

}  // namespace

std::unique_ptr<driver> make_kernel_driver(io_backend io, bool verbose) {
  using batches = io::reactor::batches;
  const bool is_asked_for = io == io_backend::uring;
  const bool in_batches = is_asked_for || (io == io_backend::automatic && usual_backend == io_backend::uring);
  const batches how = is_asked_for || verbose ? batches::and_tell : batches::quietly;
  return std::make_unique<io::reactor>(io::real_kernel(), in_batches ? how : batches::none);
}

}  // namespace weft::inline v1::sched

namespace weft::inline v1::io {
namespace {

// What an event says of each direction. After RDHUP a read always has something to say, after HUP or ERR a write too. A
// read may be short at urgent data (PRI) with more behind it, so from then on short reads say nothing.
constexpr std::uint32_t broken = EPOLLERR | EPOLLHUP;
constexpr std::uint32_t wakes_reader = EPOLLIN | EPOLLPRI | EPOLLRDHUP | broken;
constexpr std::uint32_t ends_reading = EPOLLPRI | EPOLLRDHUP | broken;
constexpr std::uint32_t wakes_writer = EPOLLOUT | broken;
constexpr std::uint32_t ends_writing = broken;

}  // namespace

const kernel_calls& kernel_of_caller() noexcept {
  if (sched::worker* on = sched::this_worker())
    if (const auto* r = dynamic_cast<const reactor*>(on->owner().polling().polled())) return r->calls();
  return real_kernel();
}

reactor::reactor(const kernel_calls& calls, batches b)
    : calls_(calls),
      set_(std::make_shared<epoll_set>(calls)),
      batcher_(b == batches::none ? nullptr : std::make_unique<batcher>(calls)),
      tells_(b == batches::and_tell) {}

template <class OnReader>
void reactor::tell(std::span<const epoll_event> events, sched::chain<task::record>& woken,
                   OnReader on_reader) noexcept {
  std::int64_t left = 0;
  for (const epoll_event& e : events) {
    fd_record& r = fd_record::at(static_cast<std::uint32_t>(e.data.u64));
    const auto generation = static_cast<std::uint32_t>(e.data.u64 >> 32);
    const auto tell_side = [&](side s, std::uint32_t wakes, std::uint32_t ends) -> waits::node* {
      if ((e.events & wakes) == 0) return nullptr;
      waits::node* n = r.in(s).tell(generation, (e.events & ends) != 0, left);
      // Only tasks of this runtime wait for a descriptor that this reactor watches (io.R3).
      if (n != nullptr) woken.push_back(static_cast<task::record*>(n->who));
      return n;
    };
    if (waits::node* n = tell_side(side::read, wakes_reader, ends_reading)) on_reader(r, *n);
    (void)tell_side(side::write, wakes_writer, ends_writing);
  }
  if (left != 0) set_->waiting().fetch_sub(left, base::relaxed);
}

void reactor::poll(base::time_ns deadline, std::size_t most, sched::chain<task::record>& woken) noexcept {
  const std::size_t room = std::clamp<std::size_t>(most / 2, 1, most_events);
  const std::span<const epoll_event> events = set_->wait(deadline, {events_, room});
  if (batcher_ == nullptr) [[likely]]
    return tell(events, woken, [](fd_record&, waits::node&) noexcept {});
  // Entries of directions are those of readiness (readiness.cpp), in the lists of records.
  tell(events, woken,
       [this](fd_record& r, waits::node& n) noexcept { batcher_->add(r, static_cast<limited_node&>(n)); });
  if (!batcher_->receive()) stop_batches();
}

void reactor::stop_batches() noexcept {
  if (tells_) {
    const batcher::reason why = batcher_->why();
    base::log_line("weft: io_uring cannot be used (%s: %s); continuing with epoll alone", why.call,
                   std::strerror(why.error));
  }
  batcher_.reset();
}

}  // namespace weft::inline v1::io
