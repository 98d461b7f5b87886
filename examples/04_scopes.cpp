// Scopes: a search that asks several places, takes the first answer, gives up in time, and leaves no task running.
#include <weft/weft.hpp>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;

namespace {

const weft::task_local<std::string> request("none");

std::string ask(const char* place, std::chrono::milliseconds takes) {
  struct goodbye {
    const char* place;
    ~goodbye() { std::printf("  [%s] %s is done\n", request->c_str(), place); }
  } at_the_end{place};
  weft::sleep_for(takes);  // if it is cancelled here, the destructor above runs
  if (std::string_view(place) == "attic") throw std::runtime_error("the attic is on fire");
  return place;
}

}  // namespace

int main() {
  return weft::run([] {
    // Tasks that borrow locals: the group is declared after them, so it ends before them on every way out of the block.
    std::string upstairs, downstairs;
    weft::task_group group;
    group.spawn([&] { upstairs = ask("bedroom", 2ms); });
    group.spawn([&] { downstairs = ask("kitchen", 1ms); });
    group.join();  // waits for both, and throws what one of them threw
    std::printf("searched the %s and the %s\n", upstairs.c_str(), downstairs.c_str());

    request.with("1", [] {
      const auto first = weft::race([] { return ask("cellar", 500ms); }, [] { return ask("kitchen", 5ms); });
      std::printf("found in the %s\n", first.c_str());  // the task in the cellar has ended by now
    });

    request.with("2", [] {
      const auto all = weft::with_timeout(
          20ms, [] { return weft::join_all([] { return ask("hall", 1ms); }, [] { return ask("garden", 5s); }); });
      std::printf("%s\n", all ? "searched everywhere" : "out of time");
    });

    request.with("3", [] {
      try {
        weft::with_scope([](weft::scope& s) {
          s.spawn([] { ask("attic", 2ms); });
          s.spawn([] { ask("garden", 5s); });  // is cancelled when the attic fails
          weft::sleep_for(5s);  // the body is cancelled as well
        });
      } catch (const std::exception& e) {
        std::printf("search ended: %s\n", e.what());
      }
    });

    int tries = 0;
    weft::task_group persistent;
    persistent.supervise({.pause = 1ms}, [&] {
      if (++tries < 3) throw std::runtime_error("no light");
      std::printf("found a candle at try %d\n", tries);
    });
    persistent.join();
  });
}
