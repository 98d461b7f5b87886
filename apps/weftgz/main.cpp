// weftgz: gzip on all processors. docs/weftgz.md says how it is built and what it promises.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <thread>
#include <vector>

#include <unistd.h>

#include <weft/signals.hpp>
#include <weft/weft.hpp>

#include <weftgz/work.hpp>

namespace {

using namespace std::chrono_literals;
using namespace weftgz;

bool is_ignored(int signal) {
  struct sigaction now = {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

// Ends the process as the signal would have ended it, so that a shell sees what has happened.
[[noreturn]] void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  raise(signal);
  _exit(128 + signal);
}

// Returns the signal that has ended the work early, or 0.
int work_until_signal(run_state& run, std::size_t at_a_time) {
  std::vector<int> ending;
  for (const int s : {SIGINT, SIGTERM, SIGHUP})
    if (!is_ignored(s)) ending.push_back(s);  // nohup ignores SIGHUP, and so do we then
  const weft::signals stop(ending);

  weft::task_group beside;
  if (!run.how.quiet && isatty(STDERR_FILENO) != 0)
    beside.spawn({.name = "progress"},
                 [&] { show_progress(run.count, run.how.mode != mode::compress, run.how.progress ? 0ms : 1000ms); });
  auto all = weft::spawn({.name = "work"}, [&] { do_all(run, at_a_time); });
  int signal = 0;
  weft::prialt(stop.on_signal([&](int number) {
    signal = number;
    all.cancel();  // every task of it unwinds, and unfinished files are removed on the way
  }),
               ~all);
  all.wait();
  if (signal == 0) all.join();
  beside.cancel();
  return signal;
}

void print_statistics(const counters& c, double seconds, bool decompressing, const weft::runtime& rt) {
  const auto in = static_cast<double>(c.bytes_read()), out = static_cast<double>(c.bytes_written());
  const double plain = decompressing ? out : in, packed = decompressing ? in : out;
  const weft::runtime_statistics s = rt.statistics();
  std::fprintf(stderr, "  %sB in, %sB out, %.1f%% of the size, %.2f s, %.0f MB/s\n", readable(in).c_str(),
               readable(out).c_str(), plain > 0 ? 100 * packed / plain : 0, seconds, plain / seconds / 1e6);
  std::fprintf(stderr, "  %zu workers: %llu tasks, %llu dispatches, %llu parks, %llu wakes, %llu stolen, %llu sleeps\n",
               rt.workers(), static_cast<unsigned long long>(s.spawned), static_cast<unsigned long long>(s.dispatched),
               static_cast<unsigned long long>(s.parks), static_cast<unsigned long long>(s.wakes),
               static_cast<unsigned long long>(s.stolen_tasks), static_cast<unsigned long long>(s.sleeps));
}

}  // namespace

int main(int argc, char** argv) {
  const options how = parse_command_line(argc, argv);
  const bool pipe_signal = !is_ignored(SIGPIPE);
  report said(how.quiet);
  counters count;
  int signal = 0;
  try {
    // More workers than processors would only take turns. Without -p the runtime chooses.
    const std::size_t wanted =
        how.processors == 0 ? 0
                            : std::min<std::size_t>(how.processors, std::max(std::thread::hardware_concurrency(), 1U));
    weft::runtime rt({.workers = wanted});
    const auto start = std::chrono::steady_clock::now();
    signal = rt.run([&] {
      shop tools(rt.workers(), how.mode == mode::compress ? how.size_of_blocks() : 0);
      run_state run{how, tools, said, count};
      return work_until_signal(run, rt.workers());
    });
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (how.statistics && signal == 0) print_statistics(count, elapsed.count(), how.mode != mode::compress, rt);
  } catch (const std::exception& e) {  // no threads, no memory
    said.error("failed", e.what());
  }
  if (signal != 0) end_by(signal);
  if (said.is_pipe_closed()) {
    if (pipe_signal) end_by(SIGPIPE);
    said.error("stdout", "Broken pipe");
  }
  return said.exit_code();
}
