// task_local<T> is a value that belongs to a task instead of a thread. The tasks that the task spawns inherit it.
//
//   const weft::task_local<std::string> user("nobody");
//   user.with("alice", [&] { weft::spawn(handle_request).join(); });   // handle_request sees user.get() == "alice"
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <new>
#include <type_traits>
#include <utility>

#include <weft/detail/config.hpp>
#include <weft/detail/task_core.hpp>

namespace weft::inline v1 {
namespace detail {

// Memory for a value. The caller constructs the value before it binds it. Throws std::bad_alloc.
[[nodiscard]] WEFT_API local_binding* make_binding(const void* key, std::size_t size, std::size_t alignment,
                                                   void (*destroy)(void* value) noexcept);
[[nodiscard]] WEFT_API void* value_of(local_binding* b) noexcept;
WEFT_API void discard_binding(local_binding* b) noexcept;  // for a binding whose value was not constructed
WEFT_API void bind_local(local_binding* b) noexcept;  // from now on the innermost binding of the running task
WEFT_API void unbind_local(local_binding* b) noexcept;
[[nodiscard]] WEFT_API const void* find_local(const void* key) noexcept;  // nullptr: not bound, or no task runs
WEFT_API void require_task(const char* what);  // throws usage_error on an outside thread

}  // namespace detail

// Declare it where a thread_local would be: at namespace scope, or anywhere that outlives its bindings. Every task that
// inherits a value reads it, perhaps at the same time as others, so values are const. A value can be a pointer to
// something shared.
template <class T>
class task_local {
 public:
  task_local()
    requires std::default_initializable<T>
      : initial_() {}
  explicit task_local(T initial) : initial_(std::move(initial)) {}
  task_local(const task_local&) = delete;
  task_local& operator=(const task_local&) = delete;

  // Returns the innermost binding of the running task, inherited ones included. Without a binding, and on outside
  // threads, it returns the initial value. The reference is valid until the block that bound the value ends. Never a
  // cancellation point.
  [[nodiscard]] const T& get() const noexcept {
    const void* bound = detail::find_local(this);
    return bound == nullptr ? initial_ : *static_cast<const T*>(bound);
  }
  const T& operator*() const noexcept { return get(); }
  const T* operator->() const noexcept { return &get(); }

  // Binds a value for the length of a block. Tasks spawned meanwhile keep the value for as long as they live. Blocks
  // end in the reverse order of their beginning.
  class binding {
   public:
    template <class... Arguments>
      requires std::constructible_from<T, Arguments...>
    [[nodiscard("name it: the value is bound as long as this object lives")]] explicit binding(const task_local& to,
                                                                                               Arguments&&... value) {
      detail::require_task("a task_local can be bound only in a task");
      bound_ =
          detail::make_binding(&to, sizeof(T), alignof(T), std::is_trivially_destructible_v<T> ? nullptr : &destroy);
      try {
        ::new (detail::value_of(bound_)) T(std::forward<Arguments>(value)...);
      } catch (...) {
        detail::discard_binding(bound_);
        throw;
      }
      detail::bind_local(bound_);
    }
    ~binding() { detail::unbind_local(bound_); }
    binding(const binding&) = delete;
    binding& operator=(const binding&) = delete;

   private:
    static void destroy(void* value) noexcept { static_cast<T*>(value)->~T(); }
    detail::local_binding* bound_ = nullptr;
  };

  // Calls f while the value is bound.
  template <class V, std::invocable F>
    requires std::constructible_from<T, V>
  decltype(auto) with(V&& value, F&& f) const {
    const binding bound(*this, std::forward<V>(value));
    return std::invoke(std::forward<F>(f));
  }

 private:
  T initial_;
};

}  // namespace weft::inline v1
