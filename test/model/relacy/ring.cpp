// A second opinion on sched/ring.hpp by another explorer (relacy), transcribed by hand: owner and two thieves, capacity 4.
//
// Read beside src/sched/ring.hpp: the same steps and orders under the same names. The broken twins must be noticed.
#include "second_opinion.hpp"

namespace {

enum class breaks { nothing, publication, claim };

struct task {
  rl::var<int> made;
  rl::var<int> taken;
};

template <breaks Break>
struct ring {
  rl::atomic<std::uint64_t> head;
  rl::atomic<std::uint32_t> tail;
  rl::atomic<task*> slots[4];

  static std::uint64_t pack(std::uint32_t steal, std::uint32_t real) { return std::uint64_t{steal} << 32 | real; }
  static std::uint32_t steal_of(std::uint64_t h) { return static_cast<std::uint32_t>(h >> 32); }
  static std::uint32_t real_of(std::uint64_t h) { return static_cast<std::uint32_t>(h); }

  void clear() {
    head.store(0, rl::mo_relaxed, $);
    tail.store(0, rl::mo_relaxed, $);
    for (auto& s : slots) s.store(nullptr, rl::mo_relaxed, $);
  }
  bool push(task* t) {  // false: full
    const std::uint64_t h = head.load(rl::mo_acquire, $);
    const std::uint32_t at = tail.load(rl::mo_relaxed, $);
    if (at - steal_of(h) >= 4) return false;
    slots[at % 4].store(t, rl::mo_relaxed, $);
    tail.store(at + 1, Break == breaks::publication ? rl::mo_relaxed : rl::mo_release, $);
    return true;
  }
  task* pop() {
    std::uint64_t h = head.load(rl::mo_relaxed, $);
    const std::uint32_t end = tail.load(rl::mo_relaxed, $);
    for (;;) {
      const std::uint32_t real = real_of(h);
      if (real == end) return nullptr;
      const std::uint64_t next = steal_of(h) == real ? pack(real + 1, real + 1) : pack(steal_of(h), real + 1);
      if (head.compare_exchange_weak(h, next, rl::mo_acq_rel, $, rl::mo_relaxed, $))
        return slots[real % 4].load(rl::mo_relaxed, $);
    }
  }
  // steal_into() with a place for one more instead of a ring.
  task* steal(task*& second) {
    std::uint64_t h = head.load(rl::mo_acquire, $);
    std::uint32_t real = 0, count = 0;
    for (;;) {
      real = real_of(h);
      if (steal_of(h) != real) return nullptr;
      count = tail.load(rl::mo_acquire, $) - real;
      if (count == 0 || count > 4) return nullptr;
      count -= count / 2;
      if (Break == breaks::claim) {
        head.store(pack(real, real + count), rl::mo_seq_cst, $);
        break;
      }
      if (head.compare_exchange_weak(h, pack(real, real + count), rl::mo_acq_rel, $, rl::mo_acquire, $)) break;
    }
    task* first = slots[real % 4].load(rl::mo_relaxed, $);
    if (count > 1) second = slots[(real + 1) % 4].load(rl::mo_relaxed, $);
    h = head.load(rl::mo_relaxed, $);
    while (!head.compare_exchange_weak(h, pack(real_of(h), real_of(h)), rl::mo_acq_rel, $, rl::mo_relaxed, $)) {}
    return first;
  }
};

template <breaks Break, rl::test_result_e Expected>
struct owner_and_two_thieves : rl::test_suite<owner_and_two_thieves<Break, Expected>, 3, Expected> {
  ring<Break> r;
  task tasks[4];

  static void take(task* t) {
    if (t == nullptr) return;
    RL_ASSERT(t->made($) == 1);  // complete
    RL_ASSERT(t->taken($) == 0);
    t->taken($) = 1;
  }
  void make_and_push(int i) {
    tasks[i].made($) = 1;
    RL_ASSERT(r.push(&tasks[i]));
  }
  void before() {
    r.clear();
    for (task& t : tasks) t.made($) = t.taken($) = 0;
    make_and_push(0);
    make_and_push(1);
  }
  void thread(unsigned who) {
    if (who == 0) {
      make_and_push(2);
      take(r.pop());
      make_and_push(3);
      take(r.pop());
    } else {
      task* second = nullptr;
      take(r.steal(second));
      take(second);
    }
  }
  void after() {
    while (task* t = r.pop()) take(t);
    for (task& t : tasks) RL_ASSERT(t.taken($) == 1);  // none is lost
  }
};

}  // namespace

int main() {
  return second_opinion<owner_and_two_thieves<breaks::nothing, rl::test_result_success>>("ring", 2) &&
                 second_opinion<owner_and_two_thieves<breaks::publication, rl::test_result_data_race>>(
                     "ring without publication", 2) &&
                 second_opinion<owner_and_two_thieves<breaks::claim, rl::test_result_data_race>>(
                     "ring with a claim that does not compare", 2)
             ? 0
             : 1;
}
