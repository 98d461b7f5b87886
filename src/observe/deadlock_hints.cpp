#include "observe/deadlock_hints.hpp"

#include <algorithm>
#include <set>

namespace weft::inline v1::observe {
namespace {

using waits::kind_number;

bool is_lock(kind_number k) noexcept {
  return k == kind_number::mutex || k == kind_number::shared_mutex_read || k == kind_number::shared_mutex_write;
}
bool is_end_of_task(kind_number k) noexcept { return k == kind_number::join || k == kind_number::scope; }

std::string who(const wait_graph& in, std::size_t i) { return label_of(*in.nodes()[i].task); }

std::string hint_for_cycle(const wait_graph& in, const std::vector<std::size_t>& cycle) {
  const auto count = [&](auto is) {
    return static_cast<std::size_t>(
        std::count_if(cycle.begin(), cycle.end(), [&](std::size_t i) { return is(in.kind_of(i)); }));
  };
  const std::size_t locks = count(is_lock);
  const std::size_t scopes = count([](kind_number k) { return k == kind_number::scope; });
  if (cycle.size() == 1) return who(in, cycle.front()) + " waits for itself";
  if (locks == 2 && cycle.size() == 2) return "two locks in opposite order; std::scoped_lock takes both at once";
  if (locks == cycle.size())
    return "locks that are taken in a circle; take them in the same order everywhere, or all at once with "
           "std::scoped_lock";
  if (locks == 0 && scopes == 0) return "tasks that wait for each other's end; one of them must not join the other";
  if (locks == 0)
    return "a child waits for the end of a task that waits for the end of its scope; a child must not wait for the "
           "body of "
           "its own scope";
  for (const std::size_t i : cycle)
    if (is_end_of_task(in.kind_of(i)))
      return who(in, i) +
             " waits for the end of a task while it holds a lock that is needed for that; unlock it before";
  return {};
}

// A task that waits with a lock in its hands, for something that may depend on those who want the lock.
std::string hint_for_lock(const wait_graph& in, std::size_t waiter) {
  if (!is_lock(in.kind_of(waiter)) || in.next(waiter).empty()) return {};
  const std::size_t holder = in.next(waiter).front();
  const object_view* const lock = in.object_of(waiter);
  switch (in.kind_of(holder)) {
    case kind_number::send:
      return who(in, holder) + " sends while it holds " + lock->name + ", for which " + who(in, waiter) +
             " waits; unlock it before the send";
    case kind_number::receive:
      return who(in, holder) + " receives while it holds " + lock->name + ", for which " + who(in, waiter) +
             " waits; unlock it before the receive";
    default: return {};
  }
}

std::string hint_for_channel(const wait_graph& in, const channel_finding& f) {
  const std::string& channel = f.channel->name;
  if (!f.receives)
    return f.is_certain ? "nobody but the sender has " + channel + ": give the reader to a task that receives"
                        : "nobody receives from " + channel + "; its reader has to go on receiving, or to be reset()";
  if (f.is_certain)
    return "reset() the writer before the loop that receives: " + channel + " is closed when its last writer is gone";
  for (const std::size_t other : f.others)
    if (is_end_of_task(in.kind_of(other)))
      return who(in, other) + " waits for the end of a task and probably still has a writer of " + channel +
             "; reset() or close() the writer before";
  return "nobody sends to " + channel +
         " any more, and it is not closed; close() it when all has been sent, or reset() " +
         "every writer, also one that the receiver has itself";
}

std::string hint_for_wait(const wait_graph& in, std::size_t i) {
  const object_view* const o = in.object_of(i);
  const std::string what = o == nullptr ? std::string() : " " + o->name;
  const std::string state = o == nullptr || o->state.empty() ? std::string() : " (" + o->state + ")";
  switch (in.kind_of(i)) {
    case kind_number::barrier:
      return "fewer tasks come to" + what + " than it expects" + state +
             "; its count must be the number of tasks that arrive";
    case kind_number::latch: return "nobody counts" + what + " down" + state;
    case kind_number::condition_variable:
      return "nobody notifies" + what +
             "; a notification that comes before the wait is lost, so wait with a condition: "
             "wait(lock, [&] { return ready; })";
    case kind_number::notify:
    case kind_number::event: return "nobody sets" + what;
    case kind_number::semaphore: return "nobody releases a permit of" + what;
    case kind_number::park_if: return "nobody unparks " + who(in, i);
    case kind_number::select: return "no arm of the select of " + who(in, i) + " can become ready";
    case kind_number::news: return "nobody publishes, and no writer is gone; reset() or close() the writer";
    default: return {};
  }
}

}  // namespace

std::vector<channel_finding> look_at_channels(const wait_graph& in, std::size_t most) {
  std::vector<channel_finding> all;
  for (std::size_t i = 0; i < in.nodes().size() && all.size() < most; ++i) {
    const kind_number sort = in.kind_of(i);
    if (sort != kind_number::send && sort != kind_number::receive) continue;
    const object_view* const channel = in.object_of(i);
    if (channel == nullptr) continue;
    if (std::any_of(all.begin(), all.end(), [&](const channel_finding& f) { return f.channel == channel; })) continue;
    channel_finding f{.waiter = i, .channel = channel, .receives = sort == kind_number::receive};
    const channel_holders holders = find_holders(in, *channel);
    for (const std::size_t t : holders.tasks)
      if (in.kind_of(t) != sort || in.object_of(t) != channel) f.others.push_back(t);
    f.in_variables = holders.in_variables;
    f.is_certain = holders.is_certain && holders.only(i);
    all.push_back(std::move(f));
  }
  return all;
}

std::vector<std::string> hints_for(const wait_graph& in, const std::vector<std::vector<std::size_t>>& cycles,
                                   const std::vector<channel_finding>& channels) {
  std::vector<std::string> all;
  const auto add = [&](std::string hint) {
    constexpr std::size_t most = 4;
    if (!hint.empty() && all.size() < most && std::find(all.begin(), all.end(), hint) == all.end())
      all.push_back(std::move(hint));
  };
  for (const auto& cycle : cycles) add(hint_for_cycle(in, cycle));
  if (!all.empty()) return all;  // whatever else waits, waits behind it
  for (std::size_t i = 0; i < in.nodes().size() && all.empty(); ++i) add(hint_for_lock(in, i));
  if (!all.empty()) return all;
  for (const channel_finding& f : channels) add(hint_for_channel(in, f));
  std::set<kind_number> told;
  for (std::size_t i = 0; i < in.nodes().size(); ++i)
    if (std::string hint = hint_for_wait(in, i); !hint.empty() && told.insert(in.kind_of(i)).second)
      add(std::move(hint));
  return all;
}

}  // namespace weft::inline v1::observe
