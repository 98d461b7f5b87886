#include "chan/buffer.hpp"

#include <algorithm>
#include <new>

namespace weft::inline v1::chan {
namespace {

void store(const element& e, void* room, void* sent) {
  if (e.small)
    ::new (room) words(*static_cast<words*>(sent));
  else
    e.store(room, sent);
}

void deliver(const element& e, void* received, void* stored) {
  if (e.small)
    *static_cast<words*>(received) = *static_cast<words*>(stored);
  else
    e.deliver(received, stored);
}

void destroy(const element& e, void* stored) noexcept {
  if (!e.small) e.destroy(stored);
}

// Raw memory for a number of elements. Its user constructs and destroys them.
class room {
 public:
  room(const element& e, std::size_t count) : element_(e), count_(count) {
    if (count > PTRDIFF_MAX / e.size) throw std::bad_alloc();
    start_ = static_cast<std::byte*>(::operator new(e.size * count, std::align_val_t{e.alignment}));
  }
  ~room() { ::operator delete(start_, std::align_val_t{element_.alignment}); }
  room(const room&) = delete;
  room& operator=(const room&) = delete;

  [[nodiscard]] void* at(std::size_t index) const noexcept { return start_ + index * element_.size; }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

 private:
  const element& element_;
  std::size_t count_;
  std::byte* start_;
};

class bounded_buffer final : public buffer {
 public:
  bounded_buffer(const element& e, std::size_t capacity) : element_(e), room_(e, capacity) {}
  ~bounded_buffer() override {
    for (std::size_t i = 0; i < size_; ++i) destroy(element_, room_.at((first_ + i) % room_.count()));
  }
  bool push(void* sent) override {
    if (size_ == room_.count()) return false;
    store(element_, room_.at((first_ + size_) % room_.count()), sent);
    ++size_;
    return true;
  }
  bool pop(void* received) override {
    if (size_ == 0) return false;
    void* oldest = room_.at(first_);
    deliver(element_, received, oldest);
    destroy(element_, oldest);  // it was moved from, so it owns nothing whose destructor could call back under the lock
    first_ = (first_ + 1) % room_.count();
    --size_;
    return true;
  }
  std::size_t size() const noexcept override { return size_; }

 private:
  const element& element_;
  room room_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

class unlimited_buffer final : public buffer {
 public:
  explicit unlimited_buffer(const element& e)
      : element_(e),
        per_chunk_(std::max<std::size_t>(1, chunk_bytes / e.size)) {}
  ~unlimited_buffer() override {
    while (front_ != nullptr) {
      for (std::size_t i = front_->taken; i < front_->filled; ++i) destroy(element_, front_->items.at(i));
      front_ = std::move(front_->next);
    }
  }
  bool push(void* sent) override {
    if (back_ == nullptr || back_->filled == per_chunk_) append_chunk();
    store(element_, back_->items.at(back_->filled), sent);
    ++back_->filled;
    ++size_;
    return true;
  }
  bool pop(void* received) override {
    if (size_ == 0) return false;
    while (front_->taken == per_chunk_) drop_front();
    void* oldest = front_->items.at(front_->taken);
    deliver(element_, received, oldest);
    destroy(element_, oldest);
    ++front_->taken;
    --size_;
    return true;
  }
  std::size_t size() const noexcept override { return size_; }

 private:
  static constexpr std::size_t chunk_bytes = 4096;
  struct chunk {
    chunk(const element& e, std::size_t count) : items(e, count) {}
    room items;
    std::size_t filled = 0;
    std::size_t taken = 0;
    std::unique_ptr<chunk> next;
  };

  void append_chunk() {
    std::unique_ptr<chunk> c = spare_ != nullptr ? std::move(spare_) : std::make_unique<chunk>(element_, per_chunk_);
    c->filled = c->taken = 0;
    chunk* added = c.get();
    (back_ == nullptr ? front_ : back_->next) = std::move(c);
    back_ = added;
  }
  // One empty chunk is kept, so that a queue whose length hovers around the edge of a chunk allocates nothing. Only a
  // chunk that has a successor is dropped.
  void drop_front() noexcept {
    spare_ = std::move(front_);
    front_ = std::move(spare_->next);
  }

  const element& element_;
  const std::size_t per_chunk_;
  std::size_t size_ = 0;
  std::unique_ptr<chunk> front_;
  std::unique_ptr<chunk> spare_;
  chunk* back_ = nullptr;
};

// A send into a full buffer exchanges the values: the old one goes to the sender's frame, so that its destructor runs
// there and not under the lock.
class conflated_buffer final : public buffer {
 public:
  explicit conflated_buffer(const element& e) : element_(e), room_(e, 1) {}
  ~conflated_buffer() override {
    if (full_) destroy(element_, room_.at(0));
  }
  bool push(void* sent) override {
    if (full_ && !element_.small) {
      element_.exchange(room_.at(0), sent);
    } else {
      store(element_, room_.at(0), sent);
      full_ = true;
    }
    return true;
  }
  bool pop(void* received) override {
    if (!full_) return false;
    deliver(element_, received, room_.at(0));
    destroy(element_, room_.at(0));
    full_ = false;
    return true;
  }
  std::size_t size() const noexcept override { return full_ ? 1 : 0; }

 private:
  const element& element_;
  room room_;
  bool full_ = false;
};

}  // namespace

std::unique_ptr<buffer> make_bounded_buffer(const element& e, std::size_t capacity) {
  return std::make_unique<bounded_buffer>(e, capacity);
}
std::unique_ptr<buffer> make_unlimited_buffer(const element& e) { return std::make_unique<unlimited_buffer>(e); }
std::unique_ptr<buffer> make_conflated_buffer(const element& e) { return std::make_unique<conflated_buffer>(e); }

}  // namespace weft::inline v1::chan
