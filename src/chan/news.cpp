#include "chan/news.hpp"

#include <algorithm>
#include <new>

#include "base/mutation.hpp"
#include "wait/fiber_wait.hpp"

namespace weft::inline v1::chan {
namespace {

constexpr std::size_t alignment_of(const news_state& s) noexcept { return std::max(alignof(news), s.alignment); }
// The typed state lies behind the news, in the same allocation.
constexpr std::size_t offset_of(const news_state& s) noexcept {
  return (sizeof(news) + s.alignment - 1) / s.alignment * s.alignment;
}

void free_memory(news* n) noexcept {
  const std::align_val_t alignment{alignment_of(n->layout())};
  std::destroy_at(n);
  ::operator delete(static_cast<void*>(n), alignment);
}

}  // namespace

// ---- versions and ends ---------------------------------------------------------------------------------------------

waits::node* news::claim_all(side s) noexcept {
  waits::node* first = nullptr;
  waits::node** last = &first;
  while (waits::node* n = waiters_[index(s)]) {
    waits::unlink(waiters_[index(s)], *n);
    if (base::check<"news.claim">(!waits::claim(*n, task::wake_reason::data)))
      continue;  // it was cancelled, or another arm of its select has won
    n->next = nullptr;
    *last = n;
    last = &n->next;
  }
  return first;
}

void news::resume_all(waits::node* first) noexcept {
  while (first != nullptr) {
    waits::node* next = first->next;  // read now: the node lies in its waiter's frame, which may end once it is resumed
    waits::resume(*first->who);
    first = next;
  }
}

void news::announce_and_unlock() noexcept {
  version_.store(version_.load(base::relaxed) + 1, base::relaxed);
  waits::node* woken = claim_all(side::reader);
  unlock();
  resume_all(woken);
}

void news::close_and_unlock(std::exception_ptr why) noexcept {
  waits::node* woken = nullptr;
  if (!is_closed()) {
    error_ = std::move(why);
    closed_.store(true, base::relaxed);
    woken = claim_all(side::reader);
  }
  unlock();
  resume_all(woken);
}

void news::close(std::exception_ptr why) noexcept {
  lock();
  close_and_unlock(std::move(why));
}

std::exception_ptr news::error() noexcept {
  base::lock_guard guard(lock_);
  return error_;
}

void news::add_end(side s) noexcept {
  base::lock_guard guard(lock_);
  ++ends_[index(s)];
}

bool news::drop_end(side s) noexcept {
  lock();
  const bool last_of_side = --ends_[index(s)] == 0;
  const bool last = last_of_side && ends_[0] + ends_[1] == 0;
  if (last || !last_of_side) {
    unlock();
  } else if (s == side::writer) {
    close_and_unlock(nullptr);
  } else {
    waits::node* woken = claim_all(side::writer);
    unlock();
    resume_all(woken);
  }
  return last;
}

void* news::state() noexcept { return reinterpret_cast<std::byte*>(this) + offset_of(state_); }

// ---- waiting -------------------------------------------------------------------------------------------------------

bool news_operation::try_complete() noexcept { return side_ == side::reader && news_->has_news(seen_); }
bool news_operation::try_locked() noexcept { return base::check<"news.second_look">(news_->is_there(side_, seen_)); }
bool news_operation::publish(waits::node& n) noexcept {
  news_->publish(side_, n);
  return true;
}
void news_operation::unpublish(waits::node& n) noexcept { news_->unpublish(side_, n); }
base::lock* news_operation::own_lock() noexcept { return &news_->own_lock(); }

void wait_for_news(news& n, std::uint64_t seen, std::source_location where) {
  news_operation op(&n, side::reader);
  op.aim(seen);
  if (waits::fiber_wait(op, op.node(), {.interruptible = true, .where = where}) == waits::outcome::cancelled)
    waits::throw_cancelled();
}

// ---- what the templates call ---------------------------------------------------------------------------------------

news* make_news(const news_state& s) {
  void* memory = ::operator new(offset_of(s) + s.size, std::align_val_t{alignment_of(s)});
  return ::new (memory) news(s);
}
void give_up(news* n) noexcept { free_memory(n); }
void* state_of(news& n) noexcept { return n.state(); }
void add_end(news& n, side s) noexcept { n.add_end(s); }
void drop_end(news* n, side s) noexcept {
  if (!n->drop_end(s)) return;
  n->layout().destroy(n->state());
  free_memory(n);
}

void lock(news& n) noexcept { n.lock(); }
void unlock(news& n) noexcept { n.unlock(); }
void announce_and_unlock(news& n) noexcept { n.announce_and_unlock(); }
bool has_readers(const news& n) noexcept { return n.has_readers(); }
void close(news& n, std::exception_ptr why) noexcept { n.close(std::move(why)); }
bool is_closed(const news& n) noexcept { return n.is_closed(); }
std::exception_ptr error_of(news& n) noexcept { return n.error(); }
std::uint64_t version_of(const news& n) noexcept { return n.version(); }

}  // namespace weft::inline v1::chan
