// Who waits for whom, as far as that is certain: the exact edges between waiting tasks, and their cycles.
//
// An edge says that the wait cannot end before the other task does something: it ends (join), it gives a lock back, or it
// ends as a child of the scope that is waited for. A wait in a select has no edges, because another arm may end it, and a
// wait for something that anybody may give (a value, a notification, a permit) has none either. So every task on a cycle
// waits until it is cancelled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "observe/snapshot.hpp"

namespace weft::inline v1::observe {

class wait_graph {
 public:
  // A waiting task, of one of the snapshots.
  struct node {
    const snapshot* in;
    const task_view* task;
    std::size_t runtime;  // which of the snapshots
  };
  // The snapshots outlive the graph. They are of different runtimes.
  explicit wait_graph(std::span<const snapshot> all);

  [[nodiscard]] const std::vector<node>& nodes() const noexcept { return nodes_; }
  // The nodes for which this one waits.
  [[nodiscard]] const std::vector<std::size_t>& next(std::size_t i) const noexcept { return edges_[i]; }
  // Each cycle as the tasks on it, each of which waits for the following one, and the last for the first. Where cycles
  // share tasks, at least one of them is found. At most `most`.
  [[nodiscard]] std::vector<std::vector<std::size_t>> cycles(std::size_t most = 8) const;
  // The object of a plain wait; nullptr if there is none that is known, or if the task waits in a select.
  [[nodiscard]] const object_view* object_of(std::size_t i) const noexcept;
  [[nodiscard]] waits::kind_number kind_of(std::size_t i) const noexcept;

 private:
  using index_of_record = std::unordered_map<const void*, std::size_t>;
  static constexpr std::size_t nobody = SIZE_MAX;
  [[nodiscard]] std::size_t holder_of(std::size_t i, const index_of_record& by_record) const;

  std::vector<node> nodes_;
  std::vector<std::vector<std::size_t>> edges_;
};

}  // namespace weft::inline v1::observe
