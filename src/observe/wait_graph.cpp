#include "observe/wait_graph.hpp"

#include <algorithm>
#include <unordered_map>

#include "observe/memory.hpp"
#include "sync/mutex.hpp"
#include "sync/shared_mutex.hpp"

namespace weft::inline v1::observe {

using waits::kind_number;

namespace {

// Whether the task holds the lock. A snapshot says so of tasks of its own runtime only.
bool holds(const task_view& t, kind_number sort, const void* lock) {
  const locks::owner who = locks::owner_of(*t.record, t.id);
  if (sort == kind_number::mutex) {
    const copy_of<locks::mutex_core> m(lock);
    return m && m->is_held() && m->is_held_by(who);
  }
  const copy_of<locks::shared_mutex_core> m(lock);
  return m && m->is_written() && m->is_written_by(who);
}

}  // namespace

wait_graph::wait_graph(std::span<const snapshot> all) {
  for (std::size_t r = 0; r < all.size(); ++r)
    for (const task_view& t : all[r].tasks)
      if (t.state == task_state::waiting && t.is_exact && t.kind != nullptr) nodes_.push_back({&all[r], &t, r});
  edges_.resize(nodes_.size());
  index_of_record by_record;
  std::unordered_multimap<const void*, std::size_t> by_scope;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    by_record.emplace(nodes_[i].task->record, i);
    if (nodes_[i].task->scope != nullptr) by_scope.emplace(nodes_[i].task->scope, i);
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const void* const object = nodes_[i].task->object;
    switch (kind_of(i)) {
      case kind_number::join:
        if (const auto at = by_record.find(object); at != by_record.end()) edges_[i].push_back(at->second);
        break;
      case kind_number::scope:
        for (auto [at, end] = by_scope.equal_range(object); at != end; ++at) edges_[i].push_back(at->second);
        std::sort(edges_[i].begin(), edges_[i].end());
        break;
      case kind_number::mutex:
      case kind_number::shared_mutex_write:
      case kind_number::shared_mutex_read: {
        const std::size_t holder = holder_of(i, by_record);
        if (holder != nobody) edges_[i].push_back(holder);
        break;
      }
      default: break;
    }
  }
}

std::size_t wait_graph::holder_of(std::size_t i, const index_of_record& by_record) const {
  const object_view* const lock = object_of(i);
  if (lock == nullptr || !lock->is_held || lock->held_outside) return nobody;
  if (lock->holder != none) {
    const auto at = by_record.find(nodes_[i].in->tasks[lock->holder].record);
    return at == by_record.end() ? nobody : at->second;  // it does not wait
  }
  for (std::size_t k = 0; k < nodes_.size(); ++k)
    if (nodes_[k].in != nodes_[i].in && holds(*nodes_[k].task, kind_of(i), lock->address)) return k;
  return nobody;
}

const object_view* wait_graph::object_of(std::size_t i) const noexcept {
  const task_view& t = *nodes_[i].task;
  if (kind_of(i) == kind_number::select || t.waits.size() != 1 || t.waits.front().about == none) return nullptr;
  return &nodes_[i].in->objects[t.waits.front().about];
}

kind_number wait_graph::kind_of(std::size_t i) const noexcept { return nodes_[i].task->kind->number; }

// A depth-first walk that remembers the way. An edge back to the way closes a cycle.
std::vector<std::vector<std::size_t>> wait_graph::cycles(std::size_t most) const {
  enum class seen : std::uint8_t { no, on_the_way, done };
  struct step {
    std::size_t at;
    std::size_t edge;
  };
  std::vector<seen> marks(nodes_.size(), seen::no);
  std::vector<std::vector<std::size_t>> found;
  std::vector<step> way;
  for (std::size_t start = 0; start < nodes_.size() && found.size() < most; ++start) {
    if (marks[start] != seen::no) continue;
    way.push_back({start, 0});
    marks[start] = seen::on_the_way;
    while (!way.empty()) {
      step& last = way.back();
      if (last.edge == edges_[last.at].size()) {
        marks[last.at] = seen::done;
        way.pop_back();
        continue;
      }
      const std::size_t to = edges_[last.at][last.edge++];
      if (marks[to] == seen::no) {
        marks[to] = seen::on_the_way;
        way.push_back({to, 0});
      } else if (marks[to] == seen::on_the_way && found.size() < most) {
        const auto begin = std::find_if(way.begin(), way.end(), [&](const step& s) { return s.at == to; });
        std::vector<std::size_t>& cycle = found.emplace_back();
        for (auto at = begin; at != way.end(); ++at) cycle.push_back(at->at);
        std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
      }
    }
  }
  return found;
}

}  // namespace weft::inline v1::observe
