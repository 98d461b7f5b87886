// The twin of src/base/known_threads.hpp. Virtual threads are no threads of the process, so nothing is known of them.
#pragma once

namespace weft::inline v1::base {

class known_thread {
 public:
  [[nodiscard]] static known_thread* of_caller() noexcept { return nullptr; }
  void expects_signal() noexcept {}
  void was_signalled() noexcept {}
};

class own_thread {
 public:
  own_thread() noexcept {}  // NOLINT(modernize-use-equals-default): it is not to be taken for an unused variable
};

class thread_rest {
 public:
  explicit thread_rest(known_thread*) noexcept {}
  thread_rest(known_thread*, const void*) noexcept {}
};

}  // namespace weft::inline v1::base
