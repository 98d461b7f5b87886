// What the channel templates know of a channel: an opaque core, how to move elements, and operations that wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

#include <weft/detail/config.hpp>
#include <weft/detail/waitable.hpp>

namespace weft::inline v1::chan {

// A small trivially copyable element travels as words, without any call.
struct words {
  std::uint64_t word[2];
};

// How elements move. The one sent is a T in the sender's frame, the one received an empty std::optional<T> in the receiver's;
// in between it may be a T in the buffer. Small elements are `words` in all three places and have no functions.
struct element {
  std::size_t size = sizeof(words);
  std::size_t alignment = alignof(words);
  bool small = true;
  bool two_words = false;
  void (*store)(void* room, void* sent) = nullptr;  // builds the buffer's T from the sender's
  void (*deliver)(void* received, void* from) = nullptr;  // fills the optional from a T
  void (*exchange)(void* stored, void* sent) = nullptr;
  void (*destroy)(void* stored) noexcept = nullptr;
};

template <class T>
inline constexpr bool is_small = std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(words) && alignof(T) <= 16;

template <class T>
inline constexpr element element_of = [] {
  element e;
  if constexpr (!is_small<T>) {
    e.size = sizeof(T);
    e.alignment = alignof(T);
    e.small = false;
    e.store = [](void* room, void* sent) { ::new (room) T(std::move(*static_cast<T*>(sent))); };
    e.deliver = [](void* received, void* from) {
      static_cast<std::optional<T>*>(received)->emplace(std::move(*static_cast<T*>(from)));
    };
    e.destroy = [](void* stored) noexcept { std::destroy_at(static_cast<T*>(stored)); };
    if constexpr (std::is_swappable_v<T>)
      e.exchange = [](void* stored, void* sent) {
        using std::swap;
        swap(*static_cast<T*>(stored), *static_cast<T*>(sent));
      };
  } else {
    e.two_words = sizeof(T) > sizeof(std::uint64_t);
  }
  return e;
}();

enum class kind : std::uint8_t { bounded, unlimited, conflated };
enum class side : std::uint8_t { writer, reader };
[[nodiscard]] constexpr side opposite(side s) noexcept { return s == side::writer ? side::reader : side::writer; }

// What became of an operation. `pending` only inside.
enum class status : std::uint8_t { pending, done, would_block, closed };

class core;

struct counts {
  std::uint64_t sent = 0, received = 0;
  std::size_t size = 0, waiting_senders = 0, waiting_receivers = 0;
};

// One writer and one reader end exist from the start. Throws std::bad_alloc, usage_error for an absurd capacity.
[[nodiscard]] WEFT_API core* make(const element& e, kind k, std::size_t capacity);
WEFT_API void add_end(core& c, side s) noexcept;
WEFT_API void drop_end(core* c, side s) noexcept;

// Cancellation points.
WEFT_API status send(core& c, void* value, std::source_location where);
WEFT_API status receive(core& c, void* target, std::source_location where);
// Not.
WEFT_API status try_send(core& c, void* value);
WEFT_API status try_receive(core& c, void* target);

// By a writer: nothing more is sent; receivers get what is there, then closed. By a reader: nothing more is taken; what is
// buffered is dropped, senders get their values back. The first error given stays.
WEFT_API void close(core& c, side by, std::exception_ptr why) noexcept;
[[nodiscard]] WEFT_API bool is_closed(core& c) noexcept;  // to new sends
[[nodiscard]] WEFT_API bool is_drained(core& c) noexcept;  // closed, and nothing is left to receive
[[nodiscard]] WEFT_API std::exception_ptr error_of(core& c, side by) noexcept;  // what close() of that side was given
[[nodiscard]] WEFT_API counts counts_of(core& c) noexcept;
[[nodiscard]] WEFT_API std::size_t size_of(core& c) noexcept;
[[nodiscard]] WEFT_API std::size_t capacity_of(const core& c) noexcept;

// --- operations that can wait: alone or as arms of a select; movable while they do not --------------------------------

// A node and where its value is or shall be. Who claims the waiter owns the entry until it resumes the waiter.
struct entry : waits::node {
  void* slot = nullptr;
  status result = status::pending;
  bool admitted = false;  // a send that was published before the close and must try again
};

// What was decided under the lock. `peer` was claimed: settle with it when the lock is free. `buffered`: its value has been
// moved already.
struct attempt {
  status how = status::would_block;
  entry* peer = nullptr;
  bool buffered = false;
};

class WEFT_API operation : public waits::waitable {
 public:
  void lock() noexcept final;
  void unlock() noexcept final;
  [[nodiscard]] base::lock* own_lock() noexcept final;
  [[nodiscard]] const void* object() const noexcept final { return channel_; }
  [[nodiscard]] waits::node& node() noexcept { return entry_; }
  [[nodiscard]] status result() const noexcept { return entry_.result; }
  [[nodiscard]] bool enabled() const noexcept { return channel_ != nullptr; }
  // Before each use.
  void aim(void* slot, bool admitted = false) noexcept {
    entry_.slot = slot;
    entry_.result = status::pending;
    entry_.admitted = admitted;
  }

 protected:
  explicit operation(core* c) noexcept : channel_(c) {}
  ~operation() = default;

  core* channel_;
  entry entry_;
  attempt pending_;  // decided under the lock, for settle()
  std::exception_ptr failed_;  // a move into or out of the buffer threw under the lock
};

class WEFT_API send_operation final : public operation {
 public:
  explicit send_operation(core* c) noexcept : operation(c) {}
  bool try_complete() noexcept override;
  void freeze() noexcept override;
  bool try_locked() noexcept override;
  bool publish(waits::node& n) noexcept override;
  void unpublish(waits::node& n) noexcept override;
  void settle() override;
  [[nodiscard]] const char* reason() const noexcept override { return "send"; }
};

class WEFT_API receive_operation final : public operation {
 public:
  explicit receive_operation(core* c) noexcept : operation(c) {}
  bool try_complete() noexcept override;
  void freeze() noexcept override;
  bool try_locked() noexcept override;
  bool publish(waits::node& n) noexcept override;
  void unpublish(waits::node& n) noexcept override;
  void settle() override;
  [[nodiscard]] const char* reason() const noexcept override { return "receive"; }
};

// Completes when the other side is dead: a writer watches for the last reader, a reader for the close.
class WEFT_API death_operation final : public operation {
 public:
  death_operation(core* c, side watcher) noexcept : operation(c), watcher_(watcher) {}
  bool try_complete() noexcept override { return false; }
  bool try_locked() noexcept override;
  bool publish(waits::node& n) noexcept override;
  void unpublish(waits::node& n) noexcept override;
  [[nodiscard]] const char* reason() const noexcept override { return "death"; }

 private:
  side watcher_;
};

}  // namespace weft::inline v1::chan
