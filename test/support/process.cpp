#include "support/process.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "io/batcher.hpp"
#include "sched/os_thread.hpp"

namespace support {
namespace {

// A program that is run with WEFT_IO=uring receives for every single reader by io_uring, not only for many at a time. So
// the tests of sockets show that it makes no difference.
[[maybe_unused]] const bool every_reader_is_a_batch = [] {
  const char* text = std::getenv("WEFT_IO");
  const bool is_asked_for = text != nullptr && std::strcmp(text, "uring") == 0;
  if (is_asked_for) weft::io::least_batch = 1;
  return is_asked_for;
}();

// Calls see(name) for every entry of a directory.
template <class See>
void for_each_entry(const char* path, See&& see) {
  DIR* directory = ::opendir(path);
  if (directory == nullptr) return;
  while (const dirent* entry = ::readdir(directory))
    if (entry->d_name[0] != '.') see(std::string(entry->d_name));
  ::closedir(directory);
}

std::size_t field_of(const std::string& path, const std::string& field) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.compare(0, field.size() + 1, field + ":") == 0)
      return std::strtoull(line.c_str() + field.size() + 1, nullptr, 10);
  return 0;
}

// utime + stime: the 14th and 15th field of stat, counted after the closing parenthesis of the name.
std::uint64_t cpu_ticks(const std::string& path) {
  const std::string text = file_text(path);
  const std::size_t end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return 0;
  std::istringstream rest(text.substr(end_of_name + 1));
  std::string skipped;
  for (int i = 3; i < 14; ++i) rest >> skipped;
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  rest >> user >> system;
  return user + system;
}

// The name of a thread of this process.
std::string name_of(const std::string& thread) {
  std::string name = file_text("/proc/self/task/" + thread + "/comm");
  if (!name.empty()) name.pop_back();  // the end of the line
  return name;
}

// 0: no soak.
std::size_t asked_of_soak() {
  const char* asked = std::getenv("WEFT_TEST_LONG");
  return asked == nullptr ? 0 : std::strtoull(asked, nullptr, 10);
}

}  // namespace

std::size_t status(const char* field) { return field_of("/proc/self/status", field); }

std::size_t mappings() {
  std::ifstream file("/proc/self/maps");
  std::size_t lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  return lines;
}

std::size_t open_descriptors() {
  std::size_t n = 0;
  for_each_entry("/proc/self/fd", [&](const std::string&) { ++n; });
  return n - 1;  // the directory itself
}

std::size_t raise_descriptor_limit(std::size_t wanted) {
  rlimit now{};
  if (::getrlimit(RLIMIT_NOFILE, &now) != 0) return 0;
  if (now.rlim_cur >= wanted) return wanted;
  const rlimit more{wanted, std::max<rlim_t>(now.rlim_max, wanted)};
  if (::setrlimit(RLIMIT_NOFILE, &more) == 0) return wanted;
  const rlimit most{now.rlim_max, now.rlim_max};
  return ::setrlimit(RLIMIT_NOFILE, &most) == 0 ? most.rlim_max : now.rlim_cur;
}

std::size_t available_memory() { return field_of("/proc/meminfo", "MemAvailable") * 1024; }

activity activity_of_others(const std::string& named) {
  activity sum;
  const std::string self = std::to_string(::gettid());
  for_each_entry("/proc/self/task", [&](const std::string& thread) {
    if (thread == self || name_of(thread).compare(0, named.size(), named) != 0) return;
    const std::string path = "/proc/self/task/" + thread;
    sum.switches += field_of(path + "/status", "voluntary_ctxt_switches") +
                    field_of(path + "/status", "nonvoluntary_ctxt_switches");
    sum.cpu_ticks += cpu_ticks(path + "/stat");
    std::uint64_t ran = 0, waited = 0, turns = 0;
    std::istringstream(file_text(path + "/schedstat")) >> ran >> waited >> turns;
    sum.cpu_ns += ran;
    sum.turns += turns;
  });
  return sum;
}

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool others_sleep() {
  bool all = true;
  DIR* const threads = ::opendir("/proc/self/task");
  if (threads == nullptr) return false;
  while (const dirent* entry = ::readdir(threads)) {
    const int id = std::atoi(entry->d_name);
    if (id == 0 || id == weft::sched::this_thread_id()) continue;
    all = all && weft::sched::state_of_thread(id) == weft::sched::thread_state::sleeps;
  }
  ::closedir(threads);
  return all;
}

int thread_named(const std::string& name) {
  int found = 0;
  for_each_entry("/proc/self/task", [&](const std::string& thread) {
    if (name_of(thread) == name) found = std::atoi(thread.c_str());
  });
  return found;
}

environment::environment(const char* variable, const char* value) : variable_(variable) {
  const char* before = std::getenv(variable);
  was_set_ = before != nullptr;
  if (was_set_) before_ = before;
  if (value != nullptr)
    ::setenv(variable, value, 1);
  else
    ::unsetenv(variable);
}

environment::~environment() {
  if (was_set_)
    ::setenv(variable_.c_str(), before_.c_str(), 1);
  else
    ::unsetenv(variable_.c_str());
}

bool is_soak() { return asked_of_soak() != 0; }

std::size_t soaked(std::size_t usual, std::size_t full) {
  const std::size_t asked = asked_of_soak();
  if (asked == 0) return scaled(usual);
  return asked == 1 ? full : std::min(full, asked);
}

}  // namespace support
