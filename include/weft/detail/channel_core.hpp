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

// How elements move. The sent element is a T in the sender's frame; the received element is an empty std::optional<T>
// in the receiver's frame; in between it may be a T in the buffer. Small elements are `words` in all three places and
// need no functions.
struct element {
  std::size_t size = sizeof(words);
  std::size_t alignment = alignof(words);
  bool small = true;
  bool two_words = false;
  void (*store)(void* room, void* sent) = nullptr;  // constructs the buffer's T from the sender's
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

inline constexpr waits::wait_kind send_kind{"send", waits::kind_number::send};
inline constexpr waits::wait_kind receive_kind{"receive", waits::kind_number::receive};
inline constexpr waits::wait_kind death_kind{"death", waits::kind_number::death};
inline constexpr waits::wait_kind news_kind{"news", waits::kind_number::news};

enum class kind : std::uint8_t { bounded, unlimited, conflated };
enum class side : std::uint8_t { writer, reader };
[[nodiscard]] constexpr side opposite(side s) noexcept { return s == side::writer ? side::reader : side::writer; }

// What became of an operation. The templates never see `pending` and `retry`. `retry` tells a claimed waiter to try
// again; a send then counts as admitted even if the channel was closed since, because it was published before.
enum class status : std::uint8_t { pending, done, would_block, closed, retry };

class core;

struct counts {
  std::uint64_t sent = 0, received = 0;
  std::size_t size = 0, waiting_senders = 0, waiting_receivers = 0;
};

// One writer end and one reader end exist from the start. Throws std::bad_alloc, and usage_error for a capacity above
// 2^40.
[[nodiscard]] WEFT_API core* make(const element& e, kind k, std::size_t capacity);
WEFT_API void add_end(core& c, side s) noexcept;
WEFT_API void drop_end(core* c, side s) noexcept;

// Cancellation points.
WEFT_API status send(core& c, void* value, std::source_location where);
WEFT_API status receive(core& c, void* target, std::source_location where);
// Never cancellation points.
WEFT_API status try_send(core& c, void* value);
WEFT_API status try_receive(core& c, void* target);

// If a writer closes, nothing more is sent; receivers get what is there, and then `closed`. If a reader closes, nothing
// more is received; what is buffered is dropped, and senders get their values back. The first error that is given
// stays.
WEFT_API void close(core& c, side by, std::exception_ptr why) noexcept;
[[nodiscard]] WEFT_API bool is_closed(core& c) noexcept;  // for new sends
[[nodiscard]] WEFT_API bool is_drained(core& c) noexcept;  // closed, and nothing is left to receive
[[nodiscard]] WEFT_API std::exception_ptr error_of(core& c, side by) noexcept;  // what close() of that side was given
[[nodiscard]] WEFT_API counts counts_of(core& c) noexcept;
[[nodiscard]] WEFT_API std::size_t size_of(core& c) noexcept;
[[nodiscard]] WEFT_API std::size_t capacity_of(const core& c) noexcept;

// --- operations that can wait: alone or as arms of a select; movable while they do not -------------------------------

// A node, and where its value is or will be. Whoever claims the waiter owns the entry until it resumes the waiter.
struct entry : waits::node {
  void* slot = nullptr;
  core* channel = nullptr;

  [[nodiscard]] status result() const noexcept { return static_cast<status>(mark); }
  void set_result(status s) noexcept { mark = static_cast<std::uint8_t>(s); }
  [[nodiscard]] bool is_admitted() const noexcept { return result() == status::retry; }
};

// What was decided under the lock. `peer` was claimed, and is settled with after the lock is released. `buffered` means
// that the peer's value has been moved already.
struct attempt {
  status how = status::would_block;
  entry* peer = nullptr;
  bool buffered = false;
};

class WEFT_API operation : public waits::waitable {
 public:
  [[nodiscard]] base::lock* own_lock() noexcept final;
  [[nodiscard]] waits::node& node() noexcept { return entry_; }
  [[nodiscard]] status result() const noexcept { return entry_.result(); }
  [[nodiscard]] bool enabled() const noexcept { return entry_.channel != nullptr; }
  // To be called before each use.
  void aim(void* slot, status before = status::pending) noexcept {
    entry_.slot = slot;
    entry_.set_result(before);
  }

 protected:
  explicit operation(core* c) noexcept { entry_.channel = c; }
  ~operation() = default;

  entry entry_;
  attempt pending_;  // decided under the lock, for settle()
  std::exception_ptr failed_;  // a move into or out of the buffer threw under the lock
};

// A send, or a receive: what the one does with the writers' list the other does with the readers'.
template <side Side>
class WEFT_API transfer_operation final : public operation {
 public:
  explicit transfer_operation(core* c) noexcept : operation(c) {}
  bool try_complete() noexcept override;
  void freeze() noexcept override;
  bool try_locked() noexcept override;
  bool publish(waits::node& n) noexcept override;
  void unpublish(waits::node& n) noexcept override;
  void settle() override;
  [[nodiscard]] waits::subject what() const noexcept override {
    return {Side == side::writer ? &send_kind : &receive_kind, entry_.channel};
  }
};
extern template class transfer_operation<side::writer>;
extern template class transfer_operation<side::reader>;
using send_operation = transfer_operation<side::writer>;
using receive_operation = transfer_operation<side::reader>;

// Completes when the other side is dead: a writer watches for the death of the last reader, a reader for the close.
class WEFT_API death_operation final : public operation {
 public:
  death_operation(core* c, side watcher) noexcept : operation(c), watcher_(watcher) {}
  bool try_complete() noexcept override { return false; }
  bool try_locked() noexcept override;
  bool publish(waits::node& n) noexcept override;
  void unpublish(waits::node& n) noexcept override;
  [[nodiscard]] waits::subject what() const noexcept override { return {&death_kind, entry_.channel}; }

 private:
  side watcher_;
};

}  // namespace weft::inline v1::chan
