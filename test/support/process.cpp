#include "support/process.hpp"

#include <dirent.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "sched/os_thread.hpp"

namespace support {
namespace {

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

std::size_t available_memory() { return field_of("/proc/meminfo", "MemAvailable") * 1024; }

activity activity_of_others() {
  activity sum;
  const std::string self = std::to_string(::gettid());
  for_each_entry("/proc/self/task", [&](const std::string& thread) {
    if (thread == self) return;
    const std::string path = "/proc/self/task/" + thread;
    sum.switches += field_of(path + "/status", "voluntary_ctxt_switches") +
                    field_of(path + "/status", "nonvoluntary_ctxt_switches");
    sum.cpu_ticks += cpu_ticks(path + "/stat");
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
    if (file_text("/proc/self/task/" + thread + "/comm") == name + "\n") found = std::atoi(thread.c_str());
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

}  // namespace support
