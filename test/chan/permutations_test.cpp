// Every order of two and of three of {send, receive, close, reader's close, cancel}, for every kind of channel. Once one after
// the other, where a model of a page says what becomes of each; and all at once, where values must be conserved and each
// operation end in one way.
#include <algorithm>
#include <array>
#include <deque>
#include <map>

#include "chan/channels.hpp"

namespace {

using namespace chan_test;

enum class step : char { send = 's', receive = 'r', close = 'c', leave = 'l', cancel = 'x' };
constexpr step steps[] = {step::send, step::receive, step::close, step::leave, step::cancel};
using order = std::vector<step>;

std::vector<order> all_orders() {
  std::vector<order> all;
  for (const step a : steps)
    for (const step b : steps) {
      all.push_back({a, b});
      for (const step c : steps) all.push_back({a, b, c});
    }
  return all;
}
std::string text_of(const order& o) {
  std::string text;
  for (const step s : o) text += static_cast<char>(s);
  return text;
}

enum class ended { waits, sent, received, closed, cancelled };
struct outcome {
  ended how = ended::waits;
  int value = 0;  // of a send: its own; of a receive: what it got
  friend bool operator==(const outcome&, const outcome&) = default;
};

// What a channel is: a queue, who waits, two flags.
class model {
 public:
  explicit model(std::size_t capacity) : capacity_(capacity) {}

  void apply(step s, int id) {
    switch (s) {
      case step::send: send(id); break;
      case step::receive: receive(id); break;
      case step::close: close(); break;
      case step::leave: leave(); break;
      case step::cancel: cancel(); break;
    }
  }
  [[nodiscard]] std::optional<int> first_waiting() const {
    for (const auto& [id, o] : outcomes)
      if (o.how == ended::waits) return id;
    return std::nullopt;
  }
  [[nodiscard]] std::size_t waiting_senders() const { return senders_.size(); }
  [[nodiscard]] std::size_t waiting_receivers() const { return receivers_.size(); }
  [[nodiscard]] std::size_t size() const { return buffer_.size(); }

  std::map<int, outcome> outcomes;

 private:
  void send(int id) {
    outcomes[id] = {ended::waits, id};
    if (closed_) {
      outcomes[id].how = ended::closed;
    } else if (!receivers_.empty()) {
      outcomes[take(receivers_)] = {ended::received, id};
      outcomes[id].how = ended::sent;
    } else if (buffer_.size() < capacity_) {
      buffer_.push_back(id);
      outcomes[id].how = ended::sent;
    } else {
      senders_.push_back(id);
    }
  }
  void receive(int id) {
    outcomes[id] = {};
    if (!buffer_.empty()) {
      outcomes[id] = {ended::received, take(buffer_)};
      if (senders_.empty()) return;
      const int sender = take(senders_);
      buffer_.push_back(sender);
      outcomes[sender].how = ended::sent;
    } else if (!senders_.empty()) {
      const int sender = take(senders_);
      outcomes[sender].how = ended::sent;
      outcomes[id] = {ended::received, sender};
    } else if (closed_) {
      outcomes[id].how = ended::closed;
    } else {
      receivers_.push_back(id);
    }
  }
  void close() {
    closed_ = true;
    while (!receivers_.empty()) outcomes[take(receivers_)].how = ended::closed;
  }
  void leave() {
    close();
    while (!senders_.empty()) outcomes[take(senders_)].how = ended::closed;
    buffer_.clear();
  }
  void cancel() {
    const std::optional<int> id = first_waiting();
    if (!id) return;
    outcomes[*id].how = ended::cancelled;
    std::erase(senders_, *id);
    std::erase(receivers_, *id);
  }
  static int take(std::deque<int>& from) {
    const int first = from.front();
    from.pop_front();
    return first;
  }

  std::size_t capacity_;
  std::deque<int> buffer_, senders_, receivers_;
  bool closed_ = false;
};

// Elements: small ones go through the ring without lock, the others through the lock.
template <class T>
struct as_element;
template <>
struct as_element<int> {
  static int make(int id) { return id; }
  static int id_of(int v) { return v; }
  static bool is_there(int) { return true; }
  static constexpr bool tells = false;  // whether it was moved from
};
template <>
struct as_element<token> {
  static token make(int id) { return token(id); }
  static int id_of(const token& v) { return v.value(); }
  static bool is_there(const token& v) { return v.is_there(); }
  static constexpr bool tells = true;
};

enum class way { plain, selected };

// The operations as tasks, each with its one outcome.
template <class T>
class players {
 public:
  players(watched_runtime& rt, std::size_t capacity, way how) : rt_(rt), ends_(make<T>(capacity)), how_(how) {}

  void start(step s, int id) {
    switch (s) {
      case step::send: tasks_[id] = rt_->spawn([this, id] { return send(id); }); break;
      case step::receive: tasks_[id] = rt_->spawn([this] { return receive(); }); break;
      case step::close: ends_.out.close(); break;
      case step::leave: ends_.in.close(); break;
      case step::cancel: break;
    }
  }
  void start_at_once(step s, int id) {
    if (s == step::close) others_.push_back(rt_->spawn([this] { ends_.out.close(); }));
    if (s == step::leave) others_.push_back(rt_->spawn([this] { ends_.in.close(); }));
    if (s == step::cancel && !tasks_.empty())
      others_.push_back(rt_->spawn([victim = tasks_.begin()->second.ref()] { victim.cancel(); }));
    if (s == step::send || s == step::receive) start(s, id);
  }
  void cancel(int id) { tasks_.at(id).cancel(); }
  [[nodiscard]] bool has_ended(int id) const { return tasks_.at(id).is_finished(); }
  outcome outcome_of(int id) {
    try {
      return tasks_.at(id).join();
    } catch (const weft::task_cancelled&) {
      return {ended::cancelled, 0};
    }
  }
  void join_others() {
    for (auto& h : others_) h.join();
  }
  [[nodiscard]] std::vector<int> ids() const {
    std::vector<int> all;
    for (const auto& [id, task] : tasks_) all.push_back(id);
    return all;
  }
  weft::channel_ends<T>& ends() { return ends_; }

 private:
  outcome send(int id) {
    T mine = as_element<T>::make(id);
    try {
      const bool sent = how_ == way::plain ? static_cast<bool>(ends_.out.send(std::move(mine)))
                                           : weft::alt(ends_.out << std::move(mine)).ok();
      if (as_element<T>::tells && as_element<T>::is_there(mine) == sent) ADD_FAILURE() << "two owners, or none";
      return {sent ? ended::sent : ended::closed, id};
    } catch (const weft::cancelled&) {
      if (!as_element<T>::is_there(mine)) ADD_FAILURE() << "cancelled and taken";
      return {ended::cancelled, id};
    }
  }
  outcome receive() {
    try {
      std::optional<T> v;
      if (how_ == way::plain)
        v = ends_.in.recv();
      else
        (void)weft::alt(ends_.in >> v);
      return v ? outcome{ended::received, as_element<T>::id_of(*v)} : outcome{ended::closed, 0};
    } catch (const weft::cancelled&) {
      return {ended::cancelled, 0};
    }
  }

  watched_runtime& rt_;
  weft::channel_ends<T> ends_;
  way how_;
  std::map<int, weft::join_handle<outcome>> tasks_;
  std::vector<weft::join_handle<void>> others_;
};

template <class T>
void one_after_the_other(watched_runtime& rt, std::size_t capacity, const order& o, way how) {
  players<T> real(rt, capacity, how);
  model expected(capacity);
  int id = 1;
  for (const step s : o) {
    if (s == step::cancel) {
      if (const auto victim = expected.first_waiting()) real.cancel(*victim);
    } else {
      real.start(s, id);
    }
    expected.apply(s, id++);
    until([&] {
      const weft::channel_statistics now = real.ends().in.statistics();
      return now.waiting_senders == expected.waiting_senders() &&
             now.waiting_receivers == expected.waiting_receivers() && now.size == expected.size() &&
             std::ranges::all_of(expected.outcomes, [&](const auto& p) {
               return p.second.how == ended::waits || real.has_ended(p.first);
             });
    });
  }
  real.start(step::leave, 0);  // ends whoever waits
  expected.apply(step::leave, 0);
  for (const auto& [i, what] : expected.outcomes) {
    outcome got = real.outcome_of(i);
    if (got.how == ended::cancelled) got.value = what.value;
    ASSERT_EQ(got, what) << "operation " << i;
  }
}

template <class T>
void all_at_once(watched_runtime& rt, std::size_t capacity, const order& o, way how) {
  players<T> real(rt, capacity, how);
  int id = 1;
  for (const step s : o) real.start_at_once(s, id++);
  real.join_others();
  real.ends().out.close();
  std::map<int, int> seen;  // value -> times sent minus times received
  const auto drain = [&] {
    while (auto v = real.ends().in.try_recv()) --seen[as_element<T>::id_of(*v)];
  };
  for (const int i : real.ids()) {
    until([&] {
      drain();
      return real.has_ended(i);
    });
    const outcome got = real.outcome_of(i);
    if (got.how == ended::sent) ++seen[got.value];
    if (got.how == ended::received) --seen[got.value];
  }
  drain();
  const bool may_drop = std::ranges::find(o, step::leave) != o.end();
  for (const auto& [value, balance] : seen) {
    ASSERT_GE(balance, 0) << "received and not sent: " << value;
    ASSERT_LE(balance, may_drop ? 1 : 0) << "sent and not received: " << value;
  }
  ASSERT_TRUE(real.ends().in.is_drained());
  ASSERT_TRUE(nobody_waits(real.ends().in));
}

template <class Scenario>
void in_all_orders(std::size_t workers, Scenario scenario) {
  const auto before = token::alive.load();
  watched_runtime rt(workers);
  at_capacities([&](std::size_t capacity) {
    for (const order& o : all_orders()) {
      SCOPED_TRACE(text_of(o));
      for (const way how : {way::plain, way::selected}) {
        scenario(rt, capacity, o, how);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  });
  until([&] { return token::alive.load() == before; });
}

// req: LS-C1 LS-C2 LS-C3 LS-C4 CSP-2 CC-10
TEST(Permutations, one_after_the_other_each_operation_ends_as_the_model_says) {
  support::watchdog guard(110s);
  for (const std::size_t workers : {1, 2, 4}) {
    in_all_orders(workers, [](auto&... a) { one_after_the_other<int>(a...); });
    in_all_orders(workers, [](auto&... a) { one_after_the_other<token>(a...); });
  }
}

// req: LS-C1 LS-C2 LS-C3 CSP-2 CC-7 CC-9 CC-10
TEST(Permutations, all_at_once_values_are_conserved_and_each_operation_ends_in_one_way) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    for (std::size_t round = 0; round < scaled(4); ++round) {
      in_all_orders(workers, [](auto&... a) { all_at_once<int>(a...); });
      in_all_orders(workers, [](auto&... a) { all_at_once<token>(a...); });
    }
  });
}

}  // namespace
