// The scope behind a task_group. Its owner is a task or an outside thread. The owner is not cancelled with the
// children, and may end one round of children after the other.
//
// scope.G6. A round ends when no child is linked. Its failures, its cancellation and its deadline are then taken away
//     together, under the lock, so nothing of it reaches the next round.
//     model/group, test scope/group_*
// scope.G7. A deadline that is being rung when the round would end has a place in the scope, as a child has: the round
//     ends after it.                                                                                        model/group
// scope.G8. Only the owner joins and leaves. Anybody may spawn and cancel while the group lives.     test scope/group_*
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <thread>
#include <utility>

#include "scope/core.hpp"

namespace weft::inline v1::detail {

class group_core final : public scope_core {
 public:
  group_core(sched::scheduler& in, failures policy, std::source_location where);

  [[nodiscard]] bool is_owner() const noexcept { return identity() == owner_; }

  // --- the owner --------------------------------------------------------------------------------------------------
  // What is left of a round that has ended: its failures, and which children were cut short.
  class round {
   public:
    round(kept_failures failed, std::size_t cut_short, task::record* first) noexcept
        : failed_(std::move(failed)),
          cut_short_(cut_short),
          first_(first) {}
    round(round&& other) noexcept
        : failed_(std::move(other.failed_)),
          cut_short_(other.cut_short_),
          first_(std::exchange(other.first_, nullptr)) {}
    round& operator=(round&&) = delete;
    ~round();

    [[nodiscard]] kept_failures& failed() noexcept { return failed_; }
    // The number of children that the group's cancellation has ended, and one of them.
    [[nodiscard]] std::size_t cut_short() const noexcept { return cut_short_; }
    [[nodiscard]] const task::record& first_cut_short() const noexcept { return *first_; }

   private:
    kept_failures failed_;
    std::size_t cut_short_;
    task::record* first_;  // a reference
  };
  // Waits until no child is linked, as drain() does, and begins the next round.
  [[nodiscard]] round end_round(std::source_location where);
  // Ends the last round: cancels, waits, and admits no more children.
  [[nodiscard]] round end();

  // --- family -----------------------------------------------------------------------------------------------------
  void failed(kin& child, std::exception_ptr why) noexcept override;
  void ended(kin& child) noexcept override;

 private:
  // Identifies a task or an outside thread. The id tells a task from a later one in the same record.
  struct who {
    const task::record* task;
    std::uint64_t id;
    std::thread::id thread;
    friend bool operator==(const who&, const who&) = default;
  };
  [[nodiscard]] static who identity() noexcept;
  [[nodiscard]] round take_round(kept_failures failed) noexcept;

  const who owner_;
  // Under the lock:
  std::size_t cut_short_ = 0;
  task::record* first_cut_short_ = nullptr;  // a reference
};

}  // namespace weft::inline v1::detail
