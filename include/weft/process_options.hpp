// What a child process gets from its parent.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <weft/detail/config.hpp>

namespace weft::inline v1 {

// Where a standard stream of a child process leads.
class redirect {
 public:
  static const redirect inherit;    // where the parent's leads
  static const redirect null;       // /dev/null
  static const redirect pipe;       // a pipe, whose other end is process::input(), output() or error()
  static const redirect to_output;  // only of the standard error: where the child's standard output leads
  // A descriptor of the parent, which stays open there. The child gets a duplicate, which is not closed on exec.
  [[nodiscard]] static constexpr redirect to(int fd) noexcept { return {kind::descriptor, fd}; }

  enum class kind : std::uint8_t { inherit, null, pipe, to_output, descriptor };
  [[nodiscard]] constexpr kind what() const noexcept { return kind_; }
  [[nodiscard]] constexpr int fd() const noexcept { return fd_; }

 private:
  constexpr redirect(kind k, int fd = -1) noexcept : kind_(k), fd_(fd) {}
  kind kind_;
  int fd_;
};
inline constexpr redirect redirect::inherit{kind::inherit};
inline constexpr redirect redirect::null{kind::null};
inline constexpr redirect redirect::pipe{kind::pipe};
inline constexpr redirect redirect::to_output{kind::to_output};

struct process_options {
  redirect input = redirect::inherit;
  redirect output = redirect::inherit;
  redirect error = redirect::inherit;
  std::filesystem::path directory = {};  // in which it starts; empty stands for the parent's
  std::vector<std::string> environment =
      {};  // "NAME=value": added to the parent's environment, or replacing a part of it
  bool only_this_environment = false;  // without the parent's
  bool own_group = false;  // it leads a new process group, so signals of the terminal (ctrl-C) do not reach it
};

}  // namespace weft::inline v1
