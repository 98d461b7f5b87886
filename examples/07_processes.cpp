// Child processes and signals: a pipeline of two programs, an order to stop, and a time limit.
#include <weft/process.hpp>
#include <weft/signals.hpp>
#include <weft/stdio.hpp>
#include <weft/weft.hpp>

#include <chrono>
#include <csignal>
#include <string>

using namespace std::chrono_literals;

namespace {

// What `sort | uniq -c` would do in a shell. One task feeds the first program while another reads the second.
std::string count_lines(const std::string& text) {
  using weft::redirect;
  auto [from_sort, to_uniq] = weft::make_pipe();
  weft::process sort({"sort"}, {.input = redirect::pipe, .output = redirect::to(to_uniq.native_handle())});
  to_uniq.close();  // only sort has it now, so uniq finds the end when sort has ended
  weft::process uniq({"uniq", "-c"}, {.input = redirect::to(from_sort.native_handle()), .output = redirect::pipe});
  from_sort.close();

  auto feeder = weft::spawn([&] {
    sort.input().write_all(text);
    sort.input().close();
  });
  std::string counted;
  char room[4096];
  while (const std::size_t n = uniq.output().read_some(room)) counted.append(room, n);
  feeder.join();
  return counted;
}

}  // namespace

int main() {
  return weft::run([] {
    const auto out = weft::stdout_stream();
    out.write_all("the answer of a program: " + weft::output_of({"echo", "hello"}));
    out.write_all(count_lines("pear\napple\npear\n"));

    // A server would wait here for its work, for the end of a helper, and for the order to stop.
    const weft::signals stop({SIGTERM, SIGINT});
    const weft::process helper({"sleep", "1000"});
    auto order = weft::spawn([] { std::raise(SIGTERM); });
    auto limit = weft::after(60s);
    weft::select(stop.on_signal([&](int number) { out.write_all("signal " + std::to_string(number) + "\n"); }),
                 helper.on_exit([&](weft::exit_status how) { out.write_all("helper " + how.to_string() + "\n"); }),
                 limit.on_expire([&] { out.write_all("nothing happened\n"); }));
    order.join();

    helper.kill(SIGTERM);
    out.write_all("helper " + helper.wait().to_string() + "\n");
  });
}
