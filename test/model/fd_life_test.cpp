// How long a descriptor lives (src/io/fd_life.hpp): operations against close, against the owners' ends, against release.
//
// io.R1. The number is closed once, after every use. Use and close of the number are plain accesses: a race is found here.
// io.R2. The record is given back once, after everything else.
#include "io/fd_life.hpp"

#include "explore/explore.hpp"

using explore::join_all;
using explore::thread;
namespace base = weft::base;
namespace io = weft::io;

namespace {

struct descriptor {
  io::fd_life life;
  base::plain<int> number{7};
  base::plain<int> record{1};

  descriptor() { life.begin(); }
  void end(const io::fd_life::ended& e) {
    if (e.number) {
      model_assert(number == 7);
      number = -1;
    }
    if (e.record) {
      model_assert(record == 1);
      record = 0;
    }
  }
  bool use() {
    if (!life.begin_use()) return false;
    model_assert(number == 7 && record == 1);
    end(life.end_use());
    return true;
  }
  void close() {
    if (life.begin_close()) end(life.end_use());
  }
  void drop_owner() {
    io::fd_life::ended e;
    if (life.drop_owner(e)) close();
    end(e);
  }
};

}  // namespace

// req: IO-3
MODEL_TEST(fd_life_uses_against_close, .preemptions = -1) {
  descriptor d;
  thread([&] { (void)d.use(); });
  thread([&] { (void)d.use(); });
  thread([&] { d.close(); });
  join_all();
  model_assert(d.number == -1 && d.record == 1);
  model_assert(!d.use());
  d.drop_owner();
  model_assert(d.record == 0);
}

// req: IO-3
MODEL_TEST(fd_life_two_owners_and_a_use, .preemptions = -1) {
  descriptor d;
  d.life.add_owner();
  thread([&] {
    (void)d.use();
    d.drop_owner();
  });
  thread([&] {
    d.close();
    d.drop_owner();
  });
  join_all();
  model_assert(d.number == -1 && d.record == 0);
}

// The last owner goes while an operation is still on its way out.
// req: IO-3
MODEL_TEST(fd_life_owner_goes_during_a_use, .preemptions = -1) {
  descriptor d;
  const bool began = d.life.begin_use();
  model_assert(began);
  thread([&] {
    model_assert(d.number == 7);
    d.end(d.life.end_use());
  });
  thread([&] { d.drop_owner(); });
  join_all();
  model_assert(d.number == -1 && d.record == 0);
}

// req: IO-3
MODEL_TEST(fd_life_release_against_use_and_close, .preemptions = -1) {
  descriptor d;
  bool released = false;
  thread([&] { (void)d.use(); });
  thread([&] {
    if (!d.life.begin_release()) return;
    released = true;
    d.end(d.life.end_use());
  });
  thread([&] { d.close(); });
  join_all();
  model_assert(d.number == (released ? 7 : -1));
}
