#include "explore/search.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace explore {

void sharing::forget() {
  table_.assign(slots, {0, 0, 0});
  filled_ = 0;
}

bool sharing::note(std::uint64_t uid, int thread, bool write) {
  std::size_t i = uid % slots;
  while (table_[i].uid != 0 && table_[i].uid != uid) i = (i + 1) % slots;
  use& u = table_[i];
  if (u.uid == 0) {
    if (++filled_ > slots / 2) std::abort();
    u.uid = uid;
  }
  const std::uint8_t bit = static_cast<std::uint8_t>(1u << thread);
  if ((u.users & bit) != 0 && (!write || (u.writers & bit) != 0)) return false;
  // The first user, and the first writer of what it alone uses, teach nothing that an operation relied on.
  const bool news = (u.users & ~bit) != 0;
  u.users |= bit;
  if (write) u.writers |= bit;
  return news;
}

bool sharing::needs_no_switch(std::uint64_t uid, int thread, bool plain_load) const {
  std::size_t i = uid % slots;
  while (table_[i].uid != 0 && table_[i].uid != uid) i = (i + 1) % slots;
  const unsigned others = ~(1u << thread);
  return (table_[i].users & others) == 0 || (plain_load && (table_[i].writers & others) == 0);
}

void search::start_exhaustive(bool remember) {
  *this = search{};
  remember_ = remember;
  table_.assign(1 << 12, {0, 0, 0});
}

void search::start_random(mode how, std::uint64_t seed, int change_points) {
  *this = search{};
  mode_ = how;
  seed_ = seed;
  change_points_ = change_points;
}

// "14:1,3:2": fourteen times the first option, then option 1, three times the first, then option 2, then always the first.
void search::start_replay(const std::string& text) {
  *this = search{};
  mode_ = mode::replay;
  const char* p = text.c_str();
  while (*p != 0) {
    char* end = nullptr;
    const unsigned long zeros = std::strtoul(p, &end, 10);
    choices_.insert(choices_.end(), zeros, choice{0, 0, false});
    if (*end != ':') break;
    const unsigned long taken = std::strtoul(end + 1, &end, 10);
    choices_.push_back({0, static_cast<std::uint16_t>(taken), false});
    if (*end != ',') break;
    p = end + 1;
  }
}

void search::start_again() {
  choices_.clear();
  table_.assign(1 << 12, {0, 0, 0});
  filled_ = 0;
}

void search::begin_execution() {
  at_ = 0;
  thread_choices_ = 0;
  if (mode_ != mode::random && mode_ != mode::pct) return;
  choices_.clear();
  random_ = mix(seed_, execution_++);
  if (mode_ != mode::pct) return;
  changes_.clear();
  for (int i = 0; i < change_points_; ++i) changes_.push_back(static_cast<std::uint32_t>(random() % longest_));
  for (std::int64_t& p : priority_) p = static_cast<std::int64_t>(random() >> 2);
  lowest_ = 0;
}

bool search::next_execution() {
  if (mode_ == mode::pct) longest_ = std::max(longest_, thread_choices_);
  if (mode_ == mode::replay) return false;
  if (mode_ != mode::exhaustive) return true;
  while (!choices_.empty() && (choices_.back().only_first || choices_.back().taken + 1 == choices_.back().n))
    choices_.pop_back();
  if (choices_.empty()) return false;
  ++choices_.back().taken;
  return true;
}

std::uint64_t search::random() { return random_ = mix(random_, 0x9a7d); }

int search::choose(int n) {
  if (n == 1) return 0;
  if (at_ < choices_.size()) {
    choice& c = choices_[at_++];
    if (mode_ == mode::replay) {
      c.n = static_cast<std::uint16_t>(n);
      return c.taken < n ? c.taken : 0;
    }
    if (c.n != n) {
      std::fprintf(stderr, "explore: the test is not deterministic: a choice among %d became one among %d\n", c.n, n);
      std::abort();
    }
    return c.taken;
  }
  int taken = 0;
  if (mode_ == mode::random || mode_ == mode::pct)  // reads: the newest store half of the time
    taken = random() % 2 == 0 ? 0 : static_cast<int>(random() % static_cast<unsigned>(n));
  choices_.push_back({static_cast<std::uint16_t>(n), static_cast<std::uint16_t>(taken), false});
  ++at_;
  return taken;
}

void search::take_first(int n) {
  if (n == 1) return;
  if (at_ < choices_.size()) {
    ++at_;
    return;
  }
  choices_.push_back({static_cast<std::uint16_t>(n), 0, true});
  ++at_;
}

int search::choose_thread(const int* threads, int n, bool first_is_current) {
  ++thread_choices_;
  if (n == 1 || mode_ == mode::exhaustive || mode_ == mode::replay) return choose(n);
  int taken = 0;
  if (mode_ == mode::random) {
    taken = static_cast<int>(random() % static_cast<unsigned>(n));
  } else {
    for (std::uint32_t c : changes_)
      if (c == thread_choices_ && first_is_current) lower_priority(threads[0]);
    for (int i = 1; i < n; ++i)
      if (priority_[threads[i]] > priority_[threads[taken]]) taken = i;
  }
  choices_.push_back({static_cast<std::uint16_t>(n), static_cast<std::uint16_t>(taken), false});
  ++at_;
  return taken;
}

void search::lower_priority(int thread) { priority_[thread] = --lowest_; }

void search::grow() {
  host_vector<known_state> old(table_.size() * 2, {0, 0, 0});
  old.swap(table_);
  const std::size_t mask = table_.size() - 1;
  for (const known_state& s : old) {
    if (s.key == 0) continue;
    std::size_t i = s.key & mask;
    while (table_[i].key != 0) i = (i + 1) & mask;
    table_[i] = s;
  }
}

bool search::known(std::uint64_t state, int preemptions, int old_reads) {
  if (!remember_ || mode_ != mode::exhaustive) return false;
  if (state == 0) state = 1;
  const std::size_t mask = table_.size() - 1;
  std::size_t i = state & mask;
  while (table_[i].key != 0 && table_[i].key != state) i = (i + 1) & mask;
  const bool found = table_[i].key == state;
  if (found && table_[i].preemptions >= preemptions && table_[i].old_reads >= old_reads) return true;
  table_[i] = {state, static_cast<std::int16_t>(preemptions), static_cast<std::int16_t>(old_reads)};
  if (!found && ++filled_ * 2 > table_.size()) grow();
  return false;
}

std::string search::replay_string() const {
  std::string text;
  std::size_t zeros = 0;
  for (std::size_t i = 0; i < at_; ++i) {
    if (choices_[i].taken == 0) {
      ++zeros;
      continue;
    }
    if (!text.empty()) text += ',';
    text += std::to_string(zeros) + ':' + std::to_string(choices_[i].taken);
    zeros = 0;
  }
  return text.empty() ? "0" : text;
}

void search::print_replay(int fd) const {
  char text[64];
  std::size_t zeros = 0;
  bool first = true;
  for (std::size_t i = 0; i < at_; ++i) {
    if (choices_[i].taken == 0) {
      ++zeros;
      continue;
    }
    const int n = std::snprintf(text, sizeof text, "%s%zu:%u", first ? "" : ",", zeros, choices_[i].taken);
    if (write(fd, text, static_cast<std::size_t>(n)) < 0) return;
    first = false;
    zeros = 0;
  }
}

}  // namespace explore
