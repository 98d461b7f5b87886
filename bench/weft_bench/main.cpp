// Weft's side of every workload in bench/peers (its README defines each bench). Usage: weft_bench [--workers N] list | bench [n]
#include <weft/weft.hpp>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "blocking.hpp"
#include "channels.hpp"
#include "fairness.hpp"
#include "files.hpp"
#include "kernel.hpp"
#include "locks.hpp"
#include "net.hpp"
#include "peer.hpp"
#include "structure.hpp"

namespace {

using namespace peer;

u64 spawn_join(u64 n) {
  constexpr u64 batch = 1000;
  std::vector<weft::join_handle<u64>> handles(batch);
  u64 sum = 0;
  for (u64 b = 0; b < n / batch; ++b) {
    for (u64 i = 0; i < batch; ++i) handles[i] = weft::spawn([i] { return i; });
    for (auto& h : handles) sum += h.join();
  }
  check(sum == n / batch * sum_to(batch), "spawn_join");
  return n;
}

u64 spawn_detached_burst(u64 n) {
  std::atomic<u64> left{n};
  std::atomic<bool> done{false};
  const weft::task_ref spawner = weft::this_task::ref();
  for (u64 i = 0; i < n; ++i)
    weft::spawn([&] {
      if (left.fetch_sub(1) != 1) return;
      const weft::task_ref wake = spawner;  // `done` lets the spawner's frame go
      done = true;
      wake.unpark();
    }).detach();
  while (!done) weft::park_if(done, false);
  return n;
}

u64 yielders(u64 tasks, u64 each) {
  std::vector<weft::join_handle<void>> handles;
  for (u64 t = 0; t < tasks; ++t)
    handles.push_back(weft::spawn([each] {
      for (u64 i = 0; i < each; ++i) weft::yield();
    }));
  for (auto& h : handles) h.join();
  return tasks * each;
}

u64 skynet_node(u64 num, u64 size) {
  if (size == 1) return num;
  std::array<weft::join_handle<u64>, 10> children;
  for (u64 i = 0; i < 10; ++i)
    children[i] = weft::spawn([first = num + i * (size / 10), size] { return skynet_node(first, size / 10); });
  u64 sum = 0;
  for (auto& c : children) sum += c.join();
  return sum;
}

u64 skynet(u64 n) {
  check(skynet_node(0, n) == sum_to(n), "skynet");
  return n;
}

u64 fib_task(u64 n) {
  if (n < 2) return n;
  auto child = weft::spawn([n] { return fib_task(n - 1); });
  const u64 y = fib_task(n - 2);
  return child.join() + y;
}

u64 fib_serial(u64 n) {
  u64 a = 0, b = 1;
  for (; n > 0; --n) b = std::exchange(a, b) + b;
  return a;
}

u64 fib(u64 n) {
  check(fib_task(n) == fib_serial(n), "fib");
  return fib_serial(n + 1) - 1;  // tasks spawned
}

std::function<Result(u64)> parallel_for(u64 grain) {
  return [grain](u64 n) -> Result {
    std::vector<u64> got(n / grain);
    auto pass = [&] {
      std::vector<weft::join_handle<void>> handles;
      for (u64 c = 0; c < got.size(); ++c) handles.push_back(weft::spawn([&, c] { got[c] = chunk(c, grain); }));
      for (auto& h : handles) h.join();
    };
    pass();
    u64 t = now_ns();
    pass();
    t = now_ns() - t;
    check_chunks(got, grain);
    return {double(t) / 1e6};
  };
}

u64 timers(u64 n) {
  std::vector<weft::join_handle<void>> handles;
  for (u64 i = 0; i < n; ++i)
    handles.push_back(weft::spawn([i] { weft::sleep_for(std::chrono::milliseconds(sleep_ms(i))); }));
  for (auto& h : handles) h.join();
  return n;
}

u64 status_kb(const char* key) {
  u64 kb = 0;
  char line[256];
  std::FILE* f = std::fopen("/proc/self/status", "r");
  while (f && std::fgets(line, sizeof line, f))
    if (!std::strncmp(line, key, std::strlen(key))) kb = std::strtoull(line + std::strlen(key), nullptr, 10);
  if (f) std::fclose(f);
  return kb;
}

Result mem_parked(u64 n) {
  auto [out, in] = weft::make_channel<u64>();
  std::atomic<u64> started{0};
  std::vector<weft::join_handle<void>> handles(n);
  const u64 before = rss_bytes(), tables = status_kb("VmPTE:");
  for (auto& h : handles)
    h = weft::spawn([&started, &from = in] {
      ++started;
      (void)from.recv();
    });
  while (started < n) weft::yield();
  weft::sleep_for(std::chrono::milliseconds(200));
  const double bytes = double(rss_bytes() - before) / double(n);
  const double table_bytes = double(status_kb("VmPTE:") - tables) * 1024 / double(n);
  out.close();
  for (auto& h : handles) h.join();
  return {bytes, {{"page_tables", table_bytes}}};
}

Result wake_latency(u64 n) {
  auto [out, in] = weft::make_channel<u64>();
  std::thread waker([n, &to = out] {
    for (u64 i = 0; i < n; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      (void)to.send(now_ns());
    }
    to.close();
  });
  std::vector<double> ns;
  while (auto sent = in.recv()) ns.push_back(double(now_ns() - *sent));
  waker.join();
  check(ns.size() == n, "wake_latency");
  return percentiles_us(std::move(ns));
}

Result idle_price(u64 n) {
  const u64 cpu = cpu_ns();
  for (u64 i = 0; i < n; ++i) weft::sleep_for(std::chrono::milliseconds(10));
  return {double(cpu_ns() - cpu) / 1e6};
}

int workers = 0;

Result steal_latency(u64 n) {
  if (workers < 2) {
    std::fprintf(stderr, "steal_latency needs two workers\n");
    std::_Exit(2);
  }
  const kernel::figures f = kernel::summary(kernel::steal_latency(n));
  return {f.median / 1000, {{"p95", f.p95 / 1000}, {"p99", f.p99 / 1000}}};
}

Result trivial_tasks(u64 n) {
  const kernel::figures f = kernel::summary(kernel::trivial_tasks(n / 1000));
  return {f.median, {{"p95", f.p95}, {"p99", f.p99}, {"million_per_second", 1000 / f.median}}};
}

Result runtime(const Args& a, const std::function<Result()>& body) {
  weft::runtime_options options;
  options.workers = static_cast<std::size_t>(a.workers);
  options.elastic = a.workers != 1;  // where the peers have one thread, so have we
  workers = a.workers;
  return weft::run(options, [&] { return body(); });
}

}  // namespace

int main(int argc, char** argv) {
  return main_with("weft", parse(argc, argv),
                   {
                       ns_per_op("spawn_join", 1000000, spawn_join),
                       ns_per_op("spawn_detached_burst", 1000000, spawn_detached_burst),
                       ns_per_op("yield_pair", 4000000, [](u64 n) { return yielders(2, n / 2); }),
                       ns_per_op("yield_many", 2000000, [](u64 n) { return yielders(1000, n / 1000); }),
                       ns_per_op("pingpong", 1000000, weft_bench::pingpong),
                       ns_per_op("chan_spsc", 4000000, [](u64 n) { return weft_bench::producers_consumers(1, 1, n); }),
                       ns_per_op("chan_mpmc", 4000000, [](u64 n) { return weft_bench::producers_consumers(4, 4, n); }),
                       ns_per_op("select", 2000000, [](u64 n) { return weft_bench::select_from(128, n); }),
                       ns_per_op("select_rendezvous", 1000000, [](u64 n) { return weft_bench::select_from(0, n); }),
                       ns_per_op("ring", 1000000, weft_bench::ring),
                       {"prime_sieve", "ms", 2000, weft_bench::prime_sieve},
                       total_ms("skynet", 1000000, skynet),
                       ns_per_op("fib", 30, fib),
                       {"parallel_for", "ms", 10000000, parallel_for(10000)},
                       {"parallel_for_fine", "ms", 10000000, parallel_for(100)},
                       with_cpu(total_ms("timers", 100000, timers), "cpu_ns_per_sleep"),
                       ns_per_op("scope_spawn", 1000000, weft_bench::scope_spawn),
                       {"cancel_tree", "ns/task", 100000, weft_bench::cancel_tree},
                       {"cancel_check", "ns", 1000000, weft_bench::cancel_check},
                       ns_per_op("mutex", 1000000, weft_bench::mutex),
                       ns_per_op("semaphore", 1000000, weft_bench::semaphore),
                       ns_per_op("rwlock", 1000000, weft_bench::rwlock),
                       {"hog_latency", "us", 1000, [](u64 n) { return weft_bench::hog_latency(workers, n); }},
                       ns_per_op("dispatch_hop", 200000, weft_bench::dispatch_hop),
                       ns_per_op("blocking_call", 200000, weft_bench::blocking_call),
                       {"accept_backlog", "ms", 1, weft_bench::accept_backlog},
                       {"tcp_echo", "server", 7000, weft_bench::tcp_echo},
                       {"tcp_echo_512", "server", 7000, weft_bench::tcp_echo_512},
                       {"tcp_echo_stuck", "server", 7000, weft_bench::tcp_echo_stuck},
                       {"tcp_echo_mixed", "server", 7000, weft_bench::tcp_echo_mixed},
                       {"unix_echo", "server", 7000, weft_bench::unix_echo},
                       {"udp_echo", "server", 7000, weft_bench::udp_echo},
                       ns_per_op("file_cached_4k", 1000000, weft_bench::file_cached_4k),
                       {"mem_parked", "bytes/task", 100000, mem_parked},
                       {"wake_latency", "us", 1000, wake_latency},
                       {"idle_price", "ms", 300, idle_price},
                       {"steal_latency", "us", 20000, steal_latency},
                       {"trivial_tasks", "ns/op", 1000000, trivial_tasks},
                   },
                   runtime);
}
