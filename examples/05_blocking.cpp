// Code that knows nothing of fibers and blocks its thread, beside code that must continue.
#include <weft/weft.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

// A driver from somewhere else. It sleeps in the kernel, and only one caller at a time may use it.
std::string query(int id) {
  std::this_thread::sleep_for(20ms);
  return "row " + std::to_string(id);
}

}  // namespace

int main() {
  weft::runtime rt({.workers = 2});
  rt.run([&] {
    int beats = 0;
    const auto start = std::chrono::steady_clock::now();
    weft::with_scope([&](weft::scope& s) {
      auto heart = s.spawn([&] {
        for (;;) {
          weft::sleep_for(5ms);
          ++beats;
        }
      });

      // One query after the other, because the driver needs it so. The dispatcher takes care of that, whoever asks.
      const weft::dispatcher database = weft::dispatcher::single();
      std::vector<weft::join_handle<std::string>> rows;
      for (int id = 1; id <= 3; ++id)
        rows.push_back(weft::spawn([=] { return weft::with(database, [=] { return query(id); }); }));
      for (auto& row : rows) std::printf("%s\n", row.join().c_str());

      // Ten calls at once: each keeps a thread, and other workers take its place.
      std::vector<weft::join_handle<void>> calls;
      for (int i = 0; i < 10; ++i)
        calls.push_back(weft::spawn([] { weft::blocking([] { std::this_thread::sleep_for(50ms); }); }));
      for (auto& call : calls) call.join();

      heart.cancel();
    });
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
    std::printf(
        "3 queries of 20 ms in turn and 10 calls of 50 ms at once on 2 workers: %lld ms, %d heartbeats meanwhile\n",
        static_cast<long long>(took.count()), beats);
  });
  const weft::elastic_statistics pool = rt.elasticity();
  std::printf("the pool grew by %llu workers\n", static_cast<unsigned long long>(pool.grown));
}
