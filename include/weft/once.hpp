// Runs a function once, by the first caller; the other callers park until it is done.
//
//   static weft::once_flag opened;
//   weft::call_once(opened, [&] { open(); });
//
// If the function throws, the exception goes to its caller, and the next caller tries again. call_once is always a
// cancellation point. It does not interrupt the function, unless the function has cancellation points of its own. A
// call from inside of the function is a usage_error, because it would wait for itself.
#pragma once

#include <functional>
#include <source_location>
#include <utility>

#include <weft/detail/config.hpp>
#include <weft/detail/room.hpp>
#include <weft/mutex.hpp>

namespace weft::inline v1 {

class WEFT_API once_flag {
 public:
  constexpr once_flag() noexcept = default;
  once_flag(const once_flag&) = delete;
  once_flag& operator=(const once_flag&) = delete;
  [[nodiscard]] bool is_done() const noexcept;

 private:
  template <class F, class... Args>
  friend void call_once(once_flag& flag, F&& f, Args&&... args);
  // True if the caller is to run the function. It then calls end() in any case.
  [[nodiscard]] bool begin(std::source_location where);
  void end(bool done) noexcept;

  locks::room<1> done_;
  mutex doing_;
};

template <class F, class... Args>
void call_once(once_flag& flag, F&& f, Args&&... args) {
  if (!flag.begin(std::source_location::current())) return;
  struct ending {
    once_flag& flag;
    bool done = false;
    ~ending() { flag.end(done); }
  } end{flag};
  std::invoke(std::forward<F>(f), std::forward<Args>(args)...);
  end.done = true;
}

}  // namespace weft::inline v1
