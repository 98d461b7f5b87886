// The search: every execution is a sequence of choices, and the next sequence follows from the last.
//
// Exhaustive mode is depth-first. To keep it small, states are remembered: the hash of what every thread has read, of all
// modification orders and of S (memory.hpp) determines everything that can follow, because a thread is deterministic
// given what it reads. A state met again with no more preemptions and old reads left than before is not continued. Unlike sleep sets
// this stays correct under a preemption bound. Guard: litmus.cpp compares outcome sets with and without it.
#pragma once

#include <cstdint>
#include <string>

#include "explore/host.hpp"

namespace explore {

enum class mode : std::uint8_t { exhaustive, random, pct, replay };

// Which threads use which objects, learnt over all executions of a search. An operation on an object that no other thread uses,
// and a load by the only thread that writes, commute with whatever others do, so no other thread needs to be tried before
// them. When an execution shows more sharing than was known, the search starts again with what it has learnt.
class sharing {
 public:
  void forget();
  // Notes a use; true when something new was learnt.
  bool note(std::uint64_t object_uid, int thread, bool write);
  bool needs_no_switch(std::uint64_t object_uid, int thread, bool plain_load) const;

 private:
  struct use {
    std::uint64_t uid;
    std::uint8_t users, writers;
  };
  static constexpr std::size_t slots = 4096;
  host_vector<use> table_;
  std::size_t filled_ = 0;
};

class search {
 public:
  void start_exhaustive(bool remember);
  void start_random(mode, std::uint64_t seed, int change_points);
  void start_replay(const std::string& choices);

  void begin_execution();
  // False: nothing is left.
  bool next_execution();
  void start_again();  // exhaustive: from the beginning, nothing known

  // 0 <= result < n. The first option is the ordinary one.
  int choose(int n);
  // Which of `threads` goes on; as choose(), but PCT has priorities.
  int choose_thread(const int* threads, int n, bool first_is_current);
  void lower_priority(int thread);  // PCT: it yielded
  // A choice among n of which the first is taken and the others need not be tried (see sharing). A replay asks it as usual.
  void take_first(int n);

  // True: this state has been continued before with at least this many preemptions and old reads left.
  bool known(std::uint64_t state, int preemptions_left, int old_reads_left);

  mode how() const { return mode_; }
  bool in_new_territory() const { return mode_ == mode::exhaustive && at_ >= choices_.size(); }
  std::string replay_string() const;  // only when not exploring
  void print_replay(int fd) const;  // from a signal handler
  std::uint64_t states() const { return filled_; }

 private:
  struct choice {
    std::uint16_t n;
    std::uint16_t taken;
    bool only_first = false;
  };
  std::uint64_t random();

  mode mode_ = mode::exhaustive;
  bool remember_ = true;
  host_vector<choice> choices_;
  std::size_t at_ = 0;

  // Open addressing; a key of 0 is free.
  struct known_state {
    std::uint64_t key;
    std::int16_t preemptions, old_reads;
  };
  host_vector<known_state> table_;
  std::size_t filled_ = 0;
  void grow();

  std::uint64_t random_ = 0;
  std::uint64_t seed_ = 0;
  std::uint64_t execution_ = 0;
  int change_points_ = 0;
  std::uint32_t longest_ = 50;
  std::uint32_t thread_choices_ = 0;
  std::int64_t priority_[16] = {};
  std::int64_t lowest_ = 0;
  host_vector<std::uint32_t> changes_;
};

}  // namespace explore
