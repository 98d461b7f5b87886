// Every kind of wait is told with its name, its place, what it is for, and the stack of the task.
#include <mutex>
#include <shared_mutex>

#include <weft/net.hpp>

#include "observe/looks.hpp"

namespace {

using namespace support::usual;
using namespace looks;

using place = base::atomic<unsigned>;  // the line at which a task is about to wait

weft::mutex in_a_global;

// A task that waits, until `release` is called, in the line that it noted before. What it does is told to contain
// `doing`.
template <class Wait, class Release>
void expect_wait(std::string_view doing, Wait wait, Release release) {
  place line{0};
  auto task = weft::spawn({.name = "waiter"}, [&] { wait(line); });
  until_parked(task);
  const observe::snapshot s = observe::take_snapshot(weft::sched::this_worker()->owner());
  const observe::task_view& t = named(s, "waiter");
  EXPECT_TRUE(t.is_exact);
  EXPECT_EQ(t.state, weft::task_state::waiting);
  const std::string text = observe::doing_text(s, t, observe::detail_level::states);
  EXPECT_TRUE(contains(text, doing)) << text << " does not contain " << doing;
  const std::string here = "waits_test.cpp:" + std::to_string(line.load(base::relaxed));
  EXPECT_TRUE(contains(observe::place_of(s, t), here)) << observe::place_of(s, t) << " is not " << here;
  const std::string trace = observe::trace_text(s.frames_of(t), "  ");
  EXPECT_TRUE(contains(trace, here)) << trace << " does not contain " << here;
  release();
  task.join();
}

#define NOTED(line) line.store(__LINE__, base::relaxed)

// req: CSP-14 W-6
TEST(Waits, for_locks_are_told_with_their_owners) {
  at_worker_counts_in_a_task([] {
    const std::string me = "#" + std::to_string(weft::this_task::id());
    weft::mutex m;
    m.lock();
    expect_wait(
        "for mutex M1 (held by " + me + " \"main\", on the stack of " + me + " \"main\")",
        [&](place& line) { NOTED(line), m.lock(), m.unlock(); }, [&] { m.unlock(); });
    m.lock();
    expect_wait("for mutex M1", [&](place& line) { NOTED(line), std::lock_guard(m); }, [&] { m.unlock(); });
    weft::shared_mutex r;
    r.lock_shared();
    expect_wait(
        "to write under shared_mutex R1 (held by 1 reader", [&](place& line) { NOTED(line), r.lock(), r.unlock(); },
        [&] { r.unlock_shared(); });
    r.lock();
    expect_wait(
        "to read under shared_mutex R1 (held by " + me + " \"main\"",
        [&](place& line) { NOTED(line), r.lock_shared(), r.unlock_shared(); }, [&] { r.unlock(); });
    in_a_global.lock();
    expect_wait(
        "in_a_global)", [&](place& line) { NOTED(line), in_a_global.lock(), in_a_global.unlock(); },
        [&] { in_a_global.unlock(); });
    auto on_heap = std::make_unique<weft::mutex>();
    on_heap->lock();
    expect_wait(
        "for mutex M1 (held by " + me + " \"main\")",
        [&](place& line) { NOTED(line), on_heap->lock(), on_heap->unlock(); }, [&] { on_heap->unlock(); });
    m.lock();
    expect_wait(
        "in a select for mutex M1 (held by " + me + " \"main\", on the stack of " + me + " \"main\") or for a timer",
        [&](place& line) { NOTED(line), (void)m.try_lock_for(1h), m.unlock(); }, [&] { m.unlock(); });
  });
}

// req: CSP-14 W-6
TEST(Waits, for_signals_and_counts_are_told_with_their_state) {
  at_worker_counts_in_a_task([] {
    weft::semaphore s(2);
    expect_wait(
        "for semaphore S1 (2 permits left", [&](place& line) { NOTED(line), s.acquire(3); }, [&] { s.release(); });
    weft::event e;
    expect_wait("for event E1 (not set", [&](place& line) { NOTED(line), e.wait(); }, [&] { e.set(); });
    weft::notify n;
    expect_wait("for notify N1", [&](place& line) { NOTED(line), n.wait(); }, [&] { n.notify_one(); });
    weft::latch l(3);
    l.count_down();
    expect_wait("for latch L1 (2 to go", [&](place& line) { NOTED(line), l.wait(); }, [&] { l.count_down(2); });
    weft::barrier b(3);
    expect_wait(
        "for barrier B1 (2 of 3 have not arrived", [&](place& line) { NOTED(line), b.arrive_and_wait(); },
        [&] {
          b.arrive_and_drop();
          b.arrive_and_drop();
        });
    weft::mutex m;
    weft::condition_variable v;
    std::unique_lock held(m, std::defer_lock);
    expect_wait(
        "for condition_variable V1", [&](place& line) { held.lock(), NOTED(line), v.wait(held), held.unlock(); },
        [&] { v.notify_one(); });
  });
}

// req: CSP-14 W-6
TEST(Waits, for_channels_are_told_with_what_is_in_them) {
  at_worker_counts_in_a_task([] {
    auto [out, in] = weft::make_channel<int>(2);
    expect_wait(
        "to receive from channel C1 (0 of 2, open, 1 writer, 1 reader)",
        [&](place& line) { NOTED(line), (void)in.recv(); }, [&] { (void)out.send(1); });
    (void)out.send(1), (void)out.send(2);
    const weft::label name(out, "jobs");
    expect_wait(
        "to send to channel \"jobs\" (2 of 2, open, 1 writer, 1 reader)",
        [&](place& line) { NOTED(line), (void)out.send(3); }, [&] { (void)in.recv(); });
    auto [rendezvous, other] = weft::make_channel<std::string>();
    expect_wait(
        "to send to channel C1 (rendezvous, open, 1 writer, 1 reader)",
        [&](place& line) { NOTED(line), (void)rendezvous.send("text"); }, [&] { (void)other.recv(); });
    auto [unlimited, many] = weft::make_channel<std::string>(weft::unlimited);
    expect_wait(
        "to receive from channel C1 (0 queued, open", [&](place& line) { NOTED(line), (void)many.recv(); },
        [&] { (void)unlimited.send("text"); });
    auto [newest, seen] = weft::make_watch(1);
    expect_wait(
        "for news W1 (version 0, open, 1 writer, 1 reader)", [&](place& line) { NOTED(line), (void)seen.recv(); },
        [&] { (void)newest.send(2); });
    weft::event stop;
    expect_wait(
        "in a select to receive from channel C1 (rendezvous, open, 1 writer, 1 reader) or for event E1 (not set",
        [&](place& line) { NOTED(line), weft::select(other.on_recv([](auto) {}), stop.on_set()); },
        [&] { stop.set(); });
  });
}

// req: CSP-14 W-6
TEST(Waits, for_tasks_scopes_and_time_are_told) {
  at_worker_counts_in_a_task([] {
    weft::event stop;
    auto alice = weft::spawn({.name = "alice"}, [&] { stop.wait(); });
    expect_wait(
        "for the end of #" + std::to_string(alice.id()) + " \"alice\"", [&](place& line) { NOTED(line), alice.wait(); },
        [&] { stop.set(); });
    alice.join();
    stop.reset();
    const auto body = [&](weft::scope& s) { s.spawn([&] { stop.wait(); }).detach(); };
    expect_wait(
        "for the end of scope P1 (1 task in it", [&](place& line) { NOTED(line), weft::with_scope(body); },
        [&] { stop.set(); });
    weft::task_ref sleeper;
    const auto cancelled = [&](place&, auto wait) {
      sleeper = weft::this_task::ref();
      (void)throws_cancelled(wait);
    };
    expect_wait(
        "for the end of its sleep", [&](place& line) { cancelled(line, [&] { NOTED(line), weft::sleep_for(1h); }); },
        [&] { sleeper.cancel(); });
    expect_wait(
        "for park_if",
        [&](place& line) {
          cancelled(line, [&] {
            const base::atomic<bool> never{false};
            NOTED(line), weft::park_if(never, false);
          });
        },
        [&] { sleeper.cancel(); });
  });
}

// req: CSP-14 W-6
TEST(Waits, for_descriptors_are_told_with_their_numbers_and_addresses) {
  at_worker_counts_in_a_task([] {
    namespace net = weft::net;
    const net::tcp_listener listener(net::endpoint::loopback(0));
    net::tcp_stream here, there;
    expect_wait(
        "to accept on descriptor ", [&](place& line) { NOTED(line), there = listener.accept(); },
        [&] { here = net::tcp_stream::connect(listener.local_endpoint()); });
    const std::string ends = here.local_endpoint().to_string() + " to " + here.remote_endpoint().to_string();
    char byte = 0;
    expect_wait(
        "(" + ends + ")", [&](place& line) { NOTED(line), (void)here.read_some({&byte, 1}); },
        [&] { there.write_all({"x", 1}); });
  });
}

// req: CSP-14
TEST(Waits, have_ages_that_grow) {
  at_worker_counts_in_a_task([] {
    weft::event stop;
    auto task = weft::spawn({.name = "waiter"}, [&] { stop.wait(); });
    until_parked(task);
    const auto age = [] {
      const observe::snapshot s = observe::take_snapshot(weft::sched::this_worker()->owner(), {.stacks = false});
      return named(s, "waiter").age;
    };
    until([&] { return age() >= 50ms; });
    EXPECT_LT(age(), 60s);
    stop.set();
    task.join();
  });
}

}  // namespace
