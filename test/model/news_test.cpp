// The waiting half of oneshot, broadcast and watch (src/chan/news).
// sources: chan/news.cpp sched/environment.cpp wait/fiber_wait.cpp wait/stop_bridge.cpp wait/thread_waiter.cpp wait/join.cpp wait/errors.cpp task/state.cpp sched/reference.cpp task/locals.cpp
// abstract lock
// abstract scheduler
//
// chan.W1. Nobody waits for what is there (a deadlock here).
// chan.W2. Whoever is woken finds it; who is cancelled has taken nothing.
// chan.W4. It is destroyed once, by the last (a leak or a use after free here).
#include "chan/news.hpp"

#include <utility>

#include "channel.hpp"

using namespace model;
using explore::join_all;
using explore::thread;

namespace {

// One end of a watch of a plain variable.
class end {
 public:
  end(chan::news* n, side s) noexcept : news_(n), side_(s) {}
  end(end&& other) noexcept : news_(std::exchange(other.news_, nullptr)), side_(other.side_) {}
  end(const end& other) noexcept : news_(other.news_), side_(other.side_) { chan::add_end(*news_, side_); }
  end& operator=(end) = delete;
  ~end() { drop(); }
  void drop() noexcept {
    if (news_ != nullptr) chan::drop_end(std::exchange(news_, nullptr), side_);
  }

  void send(int v) {
    chan::news_guard guard(*news_);
    value() = v;
    guard.announce();
  }
  // 0: nothing new, and the end.
  int receive() {
    chan::wait_for_news(*news_, seen_, {});
    const chan::news_guard guard(*news_);
    if (chan::version_of(*news_) == seen_) return 0;
    seen_ = chan::version_of(*news_);
    return value();
  }
  void wait_for_no_reader() {
    chan::news_operation op(news_, side::writer);
    model_assert(waits::fiber_wait(op, op.node(), {}) == waits::outcome::completed);
  }

 private:
  base::plain<int>& value() { return *static_cast<base::plain<int>*>(chan::state_of(*news_)); }
  chan::news* news_;
  side side_;
  u64 seen_ = 0;
};

struct ends {
  end out, in;
};
ends make() {
  chan::news* n = chan::make_news_with<base::plain<int>>(0);
  return {end(n, side::writer), end(n, side::reader)};
}

}  // namespace

// req: BZ-13
MODEL_TEST(news_every_reader_sees_the_last_version_and_the_end) {
  ends e = make();
  fiber first([in = e.in]() mutable {
    int last = 0;
    while (const int v = in.receive()) {
      model_assert(v > last);
      last = v;
    }
    model_assert(last == 2);
  });
  fiber second([in = std::move(e.in)]() mutable {
    int last = 0;
    while (const int v = in.receive()) last = v;
    model_assert(last == 2);
  });
  fiber writer([out = std::move(e.out)]() mutable {
    out.send(1);
    out.send(2);
    out.drop();
  });
  join_all();
}

// req: BZ-13
MODEL_TEST(news_a_cancelled_reader_takes_nothing_from_the_others) {
  ends e = make();
  fiber cancelled([in = e.in]() mutable { (void)in.receive(); });
  fiber other([in = std::move(e.in)]() mutable { model_assert(in.receive() == 7); });
  fiber writer([out = std::move(e.out)]() mutable { out.send(7); });
  thread([&] { cancelled.cancel(); });
  join_all();
}

// req: BZ-13
MODEL_TEST(news_a_writer_learns_that_the_last_reader_is_gone) {
  ends e = make();
  fiber writer([out = std::move(e.out)]() mutable { out.wait_for_no_reader(); });
  fiber first([in = e.in]() mutable { in.drop(); });
  fiber second([in = std::move(e.in)]() mutable { in.drop(); });
  join_all();
}

// req: BZ-13
MODEL_TEST(news_the_last_end_destroys_it_whichever_it_is) {
  ends e = make();
  fiber writer([out = std::move(e.out)]() mutable {
    out.send(1);
    out.drop();
  });
  fiber reader([in = std::move(e.in)]() mutable {
    model_assert(in.receive() == 1);
    in.drop();
  });
  join_all();
}
