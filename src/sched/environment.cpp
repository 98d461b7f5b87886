#include "sched/environment.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <weft/runtime.hpp>

namespace weft::inline v1::sched {
namespace {

// The mask grows until it is as large as the kernel wants it, because machines with more than 1024 CPUs exist.
std::size_t cpus_in_affinity_mask() {
  for (std::size_t cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
    std::vector<unsigned long> mask(cpus / (8 * sizeof(unsigned long)));
    const std::size_t bytes = mask.size() * sizeof(unsigned long);
    auto* set = reinterpret_cast<cpu_set_t*>(mask.data());
    if (::sched_getaffinity(0, bytes, set) == 0) return static_cast<std::size_t>(CPU_COUNT_S(bytes, set));
  }
  return std::thread::hardware_concurrency();
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// cgroup v2: the tightest limit on the way from our group to the root. cgroup v1: the two files of the cpu controller.
std::size_t cpus_in_cgroup() {
  std::size_t tightest = 0;
  const auto take = [&](std::size_t cpus) {
    if (cpus != 0) tightest = tightest == 0 ? cpus : std::min(tightest, cpus);
  };
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.rfind("0::", 0) != 0) continue;
    for (std::string path = line.substr(3); !path.empty();) {
      take(cpus_from_quota(first_line("/sys/fs/cgroup" + path + "/cpu.max").c_str()));
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
    take(cpus_from_quota(first_line("/sys/fs/cgroup/cpu.max").c_str()));
  }
  const std::string quota = first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  const std::string period = first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (!quota.empty() && quota[0] != '-') take(cpus_from_quota((quota + " " + period).c_str()));
  return tightest;
}

}  // namespace

std::size_t cpus_from_quota(const char* text) noexcept {
  const char* end = text + std::strlen(text);
  unsigned long long quota = 0;
  const auto [space, error] = std::from_chars(text, end, quota);
  if (error != std::errc{} || space == end || *space != ' ') return 0;
  unsigned long long period = 0;
  if (std::from_chars(space + 1, end, period).ec != std::errc{} || period == 0 || quota == 0) return 0;
  return static_cast<std::size_t>((quota + period - 1) / period);
}

worker_choice choose_cpus() {
  worker_choice c{std::max<std::size_t>(cpus_in_affinity_mask(), 1), "affinity mask"};
  if (const std::size_t quota = cpus_in_cgroup(); quota != 0 && quota < c.count) c = {quota, "cgroup quota"};
  c.count = std::min(c.count, most_workers);
  return c;
}

worker_choice choose_workers() {
  const char* text = std::getenv("WEFT_WORKERS");
  if (text == nullptr || *text == '\0') return choose_cpus();
  std::size_t workers = 0;
  const char* end = text + std::strlen(text);
  const auto [stopped, error] = std::from_chars(text, end, workers);
  if (error == std::errc{} && stopped == end && workers >= 1 && workers <= most_workers)
    return {workers, "WEFT_WORKERS"};
  const worker_choice chosen = choose_cpus();
  std::fprintf(stderr, "weft: WEFT_WORKERS=%s is not a number from 1 to %zu; using %zu\n", text, most_workers,
               chosen.count);
  return chosen;
}

io_backend io_from_environment() {
  const char* text = std::getenv("WEFT_IO");
  if (text == nullptr || *text == '\0' || std::strcmp(text, "auto") == 0) return io_backend::automatic;
  if (std::strcmp(text, "epoll") == 0) return io_backend::epoll;
  if (std::strcmp(text, "uring") == 0) return io_backend::uring;
  std::fprintf(stderr, "weft: WEFT_IO=%s is none of auto, epoll and uring; taken as auto\n", text);
  return io_backend::automatic;
}

bool flag_from_environment(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || std::strcmp(text, "0") == 0) return false;
  if (std::strcmp(text, "1") == 0) return true;
  std::fprintf(stderr, "weft: %s=%s is neither 0 nor 1; taken as 0\n", variable, text);
  return false;
}

bool aborts_on_deadlock() {
  const char* text = std::getenv("WEFT_DEADLOCK_ABORT");
  if (text == nullptr || std::strcmp(text, "1") == 0) return true;
  if (std::strcmp(text, "0") == 0) return false;
  std::fprintf(stderr, "weft: WEFT_DEADLOCK_ABORT=%s is neither 0 nor 1; taken as 1\n", text);
  return true;
}

}  // namespace weft::inline v1::sched
