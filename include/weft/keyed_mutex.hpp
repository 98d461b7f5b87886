// A mutex for each key that is in use. Keys that are not in use take no memory.
//
//   weft::keyed_mutex<std::string> accounts;
//   auto guard = accounts.lock(name);            // others with the same name wait; unlocked when the guard ends
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <functional>
#include <source_location>
#include <unordered_map>
#include <utility>

#include <weft/detail/config.hpp>
#include <weft/detail/time_point.hpp>
#include <weft/mutex.hpp>

namespace weft::inline v1 {

namespace locks {

// A key in use. `users` counts the callers that hold it, wait for it, or are about to. The table's lock protects it.
struct WEFT_API key_entry {
  void enter() noexcept;
  [[nodiscard]] bool leave() noexcept;  // true if it was the last user, which takes the entry out of the table
  mutex lock;
  std::size_t users = 0;
};

}  // namespace locks

template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
class keyed_mutex {
  using table = std::unordered_map<Key, locks::key_entry, Hash, Equal>;
  using place = typename table::value_type;  // stays where it is when the table grows

 public:
  // Holds the key, or nothing. The task that got the guard must be the one that ends it. Its end is never a
  // cancellation point, but may wait a moment.
  class [[nodiscard("the key is unlocked when the guard ends")]] guard {
   public:
    guard() = default;
    guard(guard&& other) noexcept : owner_(other.owner_), place_(std::exchange(other.place_, nullptr)) {}
    guard& operator=(guard&& other) noexcept {
      guard taken(std::move(other));  // releases what this one held: nothing, if both are one object
      std::swap(owner_, taken.owner_);
      std::swap(place_, taken.place_);
      return *this;
    }
    ~guard() { unlock(); }
    void unlock() noexcept {
      if (place_ == nullptr) return;
      place_->second.lock.unlock();
      owner_->leave(*std::exchange(place_, nullptr));
    }
    [[nodiscard]] explicit operator bool() const noexcept { return place_ != nullptr; }
    [[nodiscard]] const Key& key() const noexcept { return place_->first; }

   private:
    friend keyed_mutex;
    guard(keyed_mutex& owner, place& p) noexcept : owner_(&owner), place_(&p) {}
    keyed_mutex* owner_ = nullptr;
    place* place_ = nullptr;
  };

  keyed_mutex() = default;
  keyed_mutex(const keyed_mutex&) = delete;
  keyed_mutex& operator=(const keyed_mutex&) = delete;

  // Always cancellation points. They throw std::bad_alloc, usage_error if the caller holds the key already, and what
  // hashing, comparing and copying keys throws. The guard is empty if the time was up first.
  guard lock(const Key& key, std::source_location where = std::source_location::current()) {
    user mine(*this, enter(key, where));
    mine.at.second.lock.lock(where);
    return mine.promote();
  }
  guard try_lock_until(const Key& key, std::chrono::steady_clock::time_point when,
                       std::source_location where = std::source_location::current()) {
    user mine(*this, enter(key, where));
    return mine.at.second.lock.try_lock_until(when, where) ? mine.promote() : guard();
  }
  template <class Rep, class Period>
  guard try_lock_for(const Key& key, std::chrono::duration<Rep, Period> time,
                     std::source_location where = std::source_location::current()) {
    return try_lock_until(key, detail::time_after(time), where);
  }
  // Never cancellation points, though they may wait a moment for other callers that look up keys.
  guard try_lock(const Key& key, std::source_location where = std::source_location::current()) {
    table_guard held(*this, where);
    const auto [at, fresh] = table_.try_emplace(key);
    if (!at->second.lock.try_lock()) return guard();
    at->second.enter();
    return guard(*this, *at);
  }
  // Returns how many keys are in use.
  [[nodiscard]] std::size_t size() {
    table_guard held(*this, std::source_location::current());
    return table_.size();
  }

 private:
  struct table_guard {
    table_guard(keyed_mutex& m, std::source_location where) : lock(m.table_lock_) {
      detail::lock_uninterrupted(lock, where);
    }
    ~table_guard() { lock.unlock(); }
    table_guard(const table_guard&) = delete;
    table_guard& operator=(const table_guard&) = delete;
    mutex& lock;
  };
  // A caller that has entered, until it becomes a guard.
  struct user {
    user(keyed_mutex& m, place& p) noexcept : owner(m), at(p) {}
    ~user() {
      if (!promoted) owner.leave(at);
    }
    user(const user&) = delete;
    user& operator=(const user&) = delete;
    guard promote() noexcept {
      promoted = true;
      return guard(owner, at);
    }
    keyed_mutex& owner;
    place& at;
    bool promoted = false;
  };

  place& enter(const Key& key, std::source_location where) {
    const table_guard held(*this, where);
    place& at = *table_.try_emplace(key).first;
    at.second.enter();
    return at;
  }
  void leave(place& at) noexcept {
    typename table::node_type last;  // the key is destroyed after the table is unlocked
    const table_guard held(*this, std::source_location::current());
    if (at.second.leave()) last = table_.extract(at.first);
  }

  // This is a mutex for tasks, not a lock of the runtime, because hashing and comparing keys calls users' code.
  mutex table_lock_;
  table table_;  // under table_lock_
};

}  // namespace weft::inline v1
