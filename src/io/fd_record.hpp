// The record of an open descriptor: its number, its two directions, how long it lives (fd_life.hpp), and who watches it.
//
// Records come from a pool and are never unmapped. So an event that was on its way when the descriptor was closed still
// finds a record, whose generation says that the event is too late (io.D3).
//
// io.R3. A descriptor is watched by at most one runtime: the one whose task waits for it first. When a task of another
//     runtime has to wait for it and nobody else does, that runtime takes over.            test io/another_runtime_*
#pragma once

#include <cstdint>
#include <memory>
#include <system_error>
#include <utility>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "io/deadline_alarm.hpp"
#include "io/direction.hpp"
#include "io/epoll_set.hpp"
#include "io/fd_life.hpp"
#include "io/kernel.hpp"
#include "sched/driver.hpp"
#include <weft/detail/io_core.hpp>

namespace weft::inline v1::io {

// How the bytes of a descriptor are read and written.
enum class fd_kind : std::uint8_t {
  socket,  // recv and send, each of which is told not to block
  pipe,  // an end of a pipe that is ours, and so is non-blocking
  shared_pipe,  // an end of a pipe that others use too, who expect it to block
  device,  // a terminal or another device: a call may block although poll(2) says that it is ready
  file,  // a regular file: a call may block, and poll(2) knows nothing about it
};

// What is special about a descriptor.
struct fd_traits {
  fd_kind kind = fd_kind::socket;
  bool short_is_all = false;  // a transfer of less than was asked for means that there is no more, as with TCP
  bool borrowed = false;  // somebody else closes it
};

class alignas(base::cache_line) fd_record {
 public:
  fd_record() = default;
  fd_record(const fd_record&) = delete;
  fd_record& operator=(const fd_record&) = delete;

  // Takes over an open descriptor, with one owner. Throws std::bad_alloc, and has closed the descriptor then, unless it
  // is borrowed.
  [[nodiscard]] static fd_record& take_over(int fd, const kernel_calls& calls, fd_traits traits);

  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] const kernel_calls& calls() const noexcept { return *calls_; }
  [[nodiscard]] fd_traits traits() const noexcept { return traits_; }
  [[nodiscard]] direction& in(side s) noexcept { return directions_[static_cast<std::size_t>(s)]; }
  [[nodiscard]] bool is_closed() const noexcept { return life_.is_closed(); }
  // In the child of a fork: whether a task of the parent has opened it, or a runtime of the parent has watched it. Then
  // the parent counts on every byte of it. What an outside thread opened and no task waited for is the child's, too.
  [[nodiscard]] bool belongs_to_parent() const noexcept;

  // --- owners -------------------------------------------------------------------------------------------------------
  void add_owner() noexcept { life_.add_owner(); }
  void drop_owner() noexcept;  // closes, if the last owner has not
  // Wakes everybody who waits; their operations end with operation_canceled. Returns false if it was closed already.
  bool close() noexcept;
  // Gives up the number without closing it. Returns -1 if somebody uses it, or if it is closed.
  [[nodiscard]] int release() noexcept;

  // --- uses ---------------------------------------------------------------------------------------------------------
  // Returns false if the descriptor is closed.
  [[nodiscard]] bool begin_use() noexcept { return life_.begin_use(); }
  void end_use() noexcept;

  // --- watching -----------------------------------------------------------------------------------------------------
  // Whether somebody is told of edges in this direction.
  [[nodiscard]] bool is_watched(side s) const noexcept { return watcher(s).load(base::relaxed) != 0; }
  // Whether the runtime with this driver is.
  [[nodiscard]] bool is_watched_by(const sched::driver& d, side s) const noexcept {
    return watcher(s).load(base::relaxed) == d.id();
  }
  // Makes the runtime with this driver watch the direction; reading is watched with writing. Called during a use. Fails
  // if the kernel refuses, or if tasks of another runtime wait for the descriptor now
  // (errc::device_or_resource_busy). If the descriptor is borrowed and its number stands for another open file by now,
  // that one is watched from now on.
  [[nodiscard]] std::error_code watch(sched::driver& d, side s) noexcept;
  // The set that watches it. Called with the lock of a direction held.
  [[nodiscard]] epoll_set& set() const noexcept { return *set_; }

  // --- time limits --------------------------------------------------------------------------------------------------
  // Whether the direction's alarm rings by then, in the runtime that watches the descriptor. What
  // deadline_alarm::is_set_for() says of locks holds here, too.
  [[nodiscard]] bool is_alarm_set_for(side s, base::time_ns deadline) const noexcept {
    // acquire pairs with the exchange in set_alarm().
    const deadline_alarm* a = alarms_[static_cast<std::size_t>(s)].load(base::acquire);
    return a != nullptr && a->is_set_for(deadline, watcher(s).load(base::relaxed)) &&
           !has_changed_hands_.load(base::relaxed);
  }
  // Makes it ring by then. Called by a task whose runtime watches the descriptor. Returns false if the wait has to set a
  // timer of its own.
  [[nodiscard]] bool set_alarm(side s, base::time_ns deadline) noexcept;

  // --- outside threads ----------------------------------------------------------------------------------------------
  // An eventfd that becomes readable when the descriptor is closed; -1 if there can be none. Called during a use.
  [[nodiscard]] int bell() noexcept;

  // --- the pool -----------------------------------------------------------------------------------------------------
  [[nodiscard]] std::uint32_t index() const noexcept { return index_; }
  [[nodiscard]] static fd_record& at(std::uint32_t index) noexcept;

 private:
  friend class fd_pool;
  static constexpr std::uint32_t any_process = UINT32_MAX;

  void give_back() noexcept;
  void leave_waits() noexcept;
  using watcher_id = base::atomic<std::uint64_t>;  // a driver's id, or 0
  [[nodiscard]] const watcher_id& watcher(side s) const noexcept { return watchers_[static_cast<std::size_t>(s)]; }
  void set_watcher(side s, std::uint64_t id) noexcept {
    watchers_[static_cast<std::size_t>(s)].store(id, base::relaxed);
  }
  void stop_watching() noexcept;
  void remove_watched(int number) noexcept;
  [[nodiscard]] std::error_code watch_again() noexcept;
  [[nodiscard]] std::error_code add_to(epoll_set& s, epoll_set::interest in) noexcept;

  fd_life life_;
  const kernel_calls* calls_ = nullptr;
  int fd_ = -1;
  fd_traits traits_;
  base::atomic<std::uint32_t> used_in_{any_process};  // the process (sched::fork_generation()) whose runtime uses it
  watcher_id watchers_[2]{};  // of each direction; they change with both locks held
  std::shared_ptr<epoll_set> set_;  // the same
  int watched_fd_ = -1;  // the same: fd_, or a duplicate of it
  std::uint64_t watched_tag_ = 0;  // the same: that of its events
  direction directions_[2];
  base::atomic<deadline_alarm*> alarms_[2]{};  // made when they are needed, and kept for the record's later lives
  base::atomic<bool> has_changed_hands_{false};  // a second runtime has watched it; becomes true with both locks held
  base::atomic<int> bell_{-1};  // written with the lock of the first direction
  std::uint32_t bell_made_in_ = 0;  // the process (sched::fork_generation()); the child of a fork must not ring it
  std::uint32_t index_ = 0;
  fd_record* next_free_ = nullptr;
};

// An operation on a descriptor: the number stays valid while this lives.
class use {
 public:
  explicit use(fd_record& r) noexcept : record_(r.begin_use() ? &r : nullptr) {}
  ~use() {
    if (record_ != nullptr) record_->end_use();
  }
  use(const use&) = delete;
  use& operator=(const use&) = delete;
  [[nodiscard]] explicit operator bool() const noexcept { return record_ != nullptr; }

 private:
  fd_record* record_;
};

}  // namespace weft::inline v1::io
