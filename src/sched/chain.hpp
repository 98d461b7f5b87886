// A private FIFO of tasks that are linked through their `next`. Batches of tasks travel between queues in chains.
#pragma once

#include <cstddef>

namespace weft::inline v1::sched {

template <class Task>
class chain {
 public:
  chain() = default;
  chain(chain&& other) noexcept { take(other); }
  chain& operator=(chain&& other) noexcept {
    take(other);
    return *this;
  }

  void push_back(Task* t) noexcept {
    t->next = nullptr;
    if (last_ != nullptr)
      last_->next = t;
    else
      first_ = t;
    last_ = t;
    ++size_;
  }
  [[nodiscard]] Task* pop_front() noexcept {
    Task* t = first_;
    if (t == nullptr) return nullptr;
    first_ = t->next;
    if (first_ == nullptr) last_ = nullptr;
    --size_;
    return t;
  }
  void append(chain&& other) noexcept {
    if (other.empty()) return;
    if (last_ != nullptr)
      last_->next = other.first_;
    else
      first_ = other.first_;
    last_ = other.last_;
    size_ += other.size_;
    other.forget();
  }
  [[nodiscard]] Task* front() const noexcept { return first_; }
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  void take(chain& other) noexcept {
    first_ = other.first_;
    last_ = other.last_;
    size_ = other.size_;
    other.forget();
  }
  void forget() noexcept {
    first_ = last_ = nullptr;
    size_ = 0;
  }

  Task* first_ = nullptr;
  Task* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace weft::inline v1::sched
