#include "io/fd_record.hpp"

#include <sys/eventfd.h>

#include <new>

#include "io/fd_pool.hpp"
#include "io/reactor.hpp"
#include "sched/scheduler.hpp"

namespace weft::inline v1::io {

fd_record& fd_record::take_over(int fd, const kernel_calls& calls, fd_traits traits) {
  fd_record* r = all_fds().acquire();
  if (r == nullptr) {
    if (!traits.borrowed) calls.close(fd);
    throw std::bad_alloc();
  }
  r->fd_ = fd;
  r->calls_ = &calls;
  r->traits_ = traits;
  r->used_in_.store(sched::this_worker() != nullptr ? sched::fork_generation() : any_process, base::relaxed);
  r->has_changed_hands_.store(false, base::relaxed);
  for (direction& d : r->directions_) d.open();
  r->life_.begin();
  return *r;
}

bool fd_record::belongs_to_parent() const noexcept {
  const std::uint32_t used_in = used_in_.load(base::relaxed);
  return used_in != any_process && used_in != sched::fork_generation();
}

// ---- owners ---------------------------------------------------------------------------------------------------------

void fd_record::drop_owner() noexcept {
  fd_life::ended e;
  if (life_.drop_owner(e)) close();
  if (e.record) give_back();
}

bool fd_record::close() noexcept {
  if (!life_.begin_close()) return false;
  leave_waits();
  end_use();
  return true;
}

int fd_record::release() noexcept {
  if (!life_.begin_release()) return -1;
  leave_waits();
  const int fd = fd_;
  end_use();
  return fd;
}

// Once both directions are closed nobody makes a runtime watch the descriptor any more, and nobody begins to wait.
void fd_record::leave_waits() noexcept {
  locks::claimed_waiters all;
  for (direction& d : directions_) {
    base::lock_guard guard(d.own_lock());
    d.close(all);
  }
  stop_watching();
  if (const int bell = bell_.load(base::relaxed); bell >= 0 && bell_made_in_ == sched::fork_generation()) {
    const std::uint64_t one = 1;
    (void)!calls_->write(bell, &one, sizeof one);
  }
  all.resume();
}

// Called with both locks held, or when nobody begins to watch any more.
void fd_record::stop_watching() noexcept {
  if (set_ == nullptr) return;
  remove_watched(watched_fd_);
  for (const side s : {side::read, side::write}) set_watcher(s, 0);
}

void fd_record::remove_watched(int number) noexcept {
  set_->remove(number, watched_tag_);
  if (number != fd_) calls_->close(number);
}

// ---- uses -----------------------------------------------------------------------------------------------------------

void fd_record::end_use() noexcept {
  // Read before, because somebody else may give the record back right after.
  const int fd = fd_;
  const kernel_calls& calls = *calls_;
  const bool borrowed = traits_.borrowed;
  const fd_life::ended e = life_.end_use();
  if (e.number && !borrowed) calls.close(fd);
  if (e.record) give_back();
}

void fd_record::give_back() noexcept {
  if (const int bell = bell_.exchange(-1, base::relaxed); bell >= 0) calls_->close(bell);
  for (const side s : {side::read, side::write}) set_watcher(s, 0);
  set_.reset();
  all_fds().release(*this);
}

// ---- watching -------------------------------------------------------------------------------------------------------

std::error_code fd_record::watch(sched::driver& d, side s) noexcept {
  auto* to = dynamic_cast<reactor*>(&d);
  if (to == nullptr) return std::make_error_code(std::errc::operation_not_supported);
  base::lock_guard first(directions_[0].own_lock());
  base::lock_guard second(directions_[1].own_lock());
  if (is_closed()) return std::make_error_code(std::errc::operation_canceled);
  if (is_watched_by(d, s)) return traits_.borrowed ? watch_again() : std::error_code();
  if (is_watched_by(d, side::read)) {
    if (const std::error_code why = set_->change(watched_fd_, watched_tag_, epoll_set::interest::both)) return why;
    set_watcher(s, d.id());
    return {};
  }
  if (set_ != nullptr) {
    for (direction& one : directions_)
      if (one.is_waited_for()) return std::make_error_code(std::errc::device_or_resource_busy);
    stop_watching();
    set_.reset();
    has_changed_hands_.store(true, base::relaxed);
    for (direction& one : directions_) one.renew();
  }
  // A borrowed descriptor is watched in both directions at once, because it may have to be added again.
  const bool both = s == side::write || traits_.borrowed;
  if (const std::error_code why = add_to(*to->set(), both ? epoll_set::interest::both : epoll_set::interest::reading))
    return why;
  set_ = to->set();
  used_in_.store(sched::fork_generation(), base::relaxed);
  set_watcher(side::read, d.id());
  if (both) set_watcher(side::write, d.id());
  return {};
}

// Whoever has lent the number may have closed it and opened another file, which has got the same number: libpq does so
// while it connects. The kernel has forgotten the registration then, and to add the number again is how to find out. A
// duplicate is replaced in any case, because it may still be the old file. The new registration comes before the old one
// ends, so that others who wait for this descriptor miss nothing.
std::error_code fd_record::watch_again() noexcept {
  const int before = watched_fd_;
  if (const std::error_code why = add_to(*set_, epoll_set::interest::both)) return why;
  if (before != watched_fd_ && before != fd_) remove_watched(before);
  return {};
}

// The same number can be in an epoll only once, and somebody may have borrowed it (weft/descriptor.hpp). Then a duplicate
// is watched.
std::error_code fd_record::add_to(epoll_set& s, epoll_set::interest in) noexcept {
  const std::uint64_t tag = std::uint64_t{directions_[0].generation()} << 32 | index_;
  int added = fd_;
  std::error_code why = s.add(fd_, tag, in);
  if (why == std::errc::file_exists) {
    added = calls_->duplicate(fd_);
    if (added < 0) return last_error();
    why = s.add(added, tag, in);
    if (why) calls_->close(added);
  }
  if (why) return why;
  watched_fd_ = added;
  watched_tag_ = tag;
  return {};
}

// ---- time limits ----------------------------------------------------------------------------------------------------

bool fd_record::set_alarm(side s, base::time_ns deadline) noexcept {
  if (has_changed_hands_.load(base::relaxed)) return false;
  base::atomic<deadline_alarm*>& place = alarms_[static_cast<std::size_t>(s)];
  deadline_alarm* a = place.load(base::acquire);
  if (a == nullptr) {
    std::unique_ptr<deadline_alarm> made(new (std::nothrow) deadline_alarm(in(s)));
    if (made == nullptr) return false;
    // If another task was quicker, `a` becomes its alarm.
    if (place.compare_exchange_strong(a, made.get(), base::acq_rel, base::acquire)) a = made.release();
  }
  sched::worker& on = *sched::this_worker();
  return a->arm(deadline, on.timers(), on.owner().polling().polled()->id());
}

// ---- outside threads ------------------------------------------------------------------------------------------------

int fd_record::bell() noexcept {
  base::lock_guard guard(directions_[0].own_lock());
  if (is_closed()) return -1;
  if (const int before = bell_.load(base::relaxed); before >= 0 && bell_made_in_ != sched::fork_generation()) {
    calls_->close(before);  // the parent of this process rings it
    bell_.store(-1, base::relaxed);
  }
  if (bell_.load(base::relaxed) < 0) {
    bell_made_in_ = sched::fork_generation();
    bell_.store(calls_->eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), base::relaxed);
  }
  return bell_.load(base::relaxed);
}

fd_record& fd_record::at(std::uint32_t index) noexcept { return all_fds().at(index); }

}  // namespace weft::inline v1::io
