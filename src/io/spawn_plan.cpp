#include "io/spawn_plan.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <string_view>

#include "io/pipe_end.hpp"
#include <weft/errors.hpp>

namespace weft::inline v1::io {
namespace {

constexpr int first_free_number = STDERR_FILENO + 1;

// The functions of posix_spawn return their error.
std::error_code error_numbered(int number) noexcept { return {number, std::generic_category()}; }

std::string_view name_of_entry(std::string_view entry) noexcept { return entry.substr(0, entry.find('=')); }

void require_no_zero(const std::string& s) {
  if (s.find('\0') != std::string::npos)
    throw usage_error("an argument or an environment entry of a process has a zero inside, where it would end");
}

}  // namespace

// ---- streams --------------------------------------------------------------------------------------------------------

stream_plan::stream_plan(const kernel_calls& calls) : calls_(calls) {
  if (::posix_spawn_file_actions_init(&actions_) != 0) throw std::bad_alloc();
}
stream_plan::~stream_plan() { ::posix_spawn_file_actions_destroy(&actions_); }

std::error_code stream_plan::lead(int number, redirect where, fd_handle& other_end) {
  switch (where.what()) {
    case redirect::kind::inherit: break;
    case redirect::kind::null:
      return error_numbered(::posix_spawn_file_actions_addopen(&actions_, number, "/dev/null", O_RDWR, 0));
    case redirect::kind::pipe: return lead_to_pipe(number, other_end);
    case redirect::kind::to_output:
      if (number != STDERR_FILENO) throw usage_error("only the standard error of a process can go to its output");
      return error_numbered(::posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO));
    case redirect::kind::descriptor: {
      closing_fd copy(calls_.duplicate_above(where.fd(), first_free_number), calls_);
      if (copy.get() < 0) return last_error();
      return lead_to(number, std::move(copy));
    }
  }
  return {};
}

std::error_code stream_plan::lead_to(int number, closing_fd from) {
  childs_[number] = std::move(from);
  return error_numbered(::posix_spawn_file_actions_adddup2(&actions_, childs_[number].get(), number));
}

// Only the parent's end is non-blocking: the child expects one that blocks.
std::error_code stream_plan::lead_to_pipe(int number, fd_handle& other_end) {
  std::error_code why;
  const pipe_numbers both = open_pipe(calls_, why);
  if (why) return why;
  const bool is_read_by_child = number == STDIN_FILENO;
  closing_fd childs(is_read_by_child ? both.reader : both.writer, calls_);
  closing_fd parents(is_read_by_child ? both.writer : both.reader, calls_);
  if (childs.get() < first_free_number) {  // the parent itself has no standard streams
    childs = closing_fd(calls_.duplicate_above(childs.get(), first_free_number), calls_);
    if (childs.get() < 0) return last_error();
  }
  if (calls_.set_nonblocking(parents.get()) != 0) return last_error();
  other_end = fd_handle(fd_record::take_over(parents.release(), calls_, own_pipe));
  return lead_to(number, std::move(childs));
}

std::error_code stream_plan::go_to(const std::string& directory) {
  if (directory.empty()) return {};
  return error_numbered(::posix_spawn_file_actions_addchdir_np(&actions_, directory.c_str()));
}

// ---- attributes -----------------------------------------------------------------------------------------------------

start_attributes::start_attributes(bool own_group) {
  if (::posix_spawnattr_init(&attributes_) != 0) throw std::bad_alloc();
  sigset_t none, broken_pipe;
  ::sigemptyset(&none);
  ::sigemptyset(&broken_pipe);
  ::sigaddset(&broken_pipe, SIGPIPE);
  ::posix_spawnattr_setsigmask(&attributes_, &none);
  ::posix_spawnattr_setsigdefault(&attributes_, &broken_pipe);
  ::posix_spawnattr_setpgroup(&attributes_, 0);
  ::posix_spawnattr_setflags(&attributes_, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                              (own_group ? POSIX_SPAWN_SETPGROUP : 0)));
}

// ---- lists ----------------------------------------------------------------------------------------------------------

string_list::string_list(std::vector<std::string> strings) : strings_(std::move(strings)) {
  std::ranges::for_each(strings_, require_no_zero);
  for (std::string& s : strings_) pointers_.push_back(s.data());
  pointers_.push_back(nullptr);
}

std::vector<std::string> environment_for(const process_options& o) {
  std::vector<std::string> all;
  if (!o.only_this_environment)
    for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) all.emplace_back(*entry);
  for (const std::string& entry : o.environment) {
    const std::string_view name = name_of_entry(entry);
    if (name.empty() || name.size() == entry.size())
      throw usage_error("an entry of a process's environment is to be NAME=value, and is \"" + entry + "\"");
    std::erase_if(all, [&](const std::string& other) { return name_of_entry(other) == name; });
    all.push_back(entry);
  }
  return all;
}

}  // namespace weft::inline v1::io
