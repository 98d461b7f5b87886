#include "base/known_threads.hpp"

#if !defined(WEFT_MODEL)
#include <unistd.h>

#include <new>

#include "base/lock.hpp"

namespace weft::inline v1::base {

struct thread_list {
  lock guard;
  known_thread* first = nullptr;  // under the lock
  atomic<std::uint32_t> process{1};
  atomic<void (*)() noexcept> hears{nullptr};

  void link(known_thread& t) noexcept {
    lock_guard hold(guard);
    t.id_ = ::gettid();
    t.process_ = process.load(relaxed);
    t.is_own_.store(false, relaxed);
    t.rests_in_.store(nullptr, relaxed);
    t.previous_ = nullptr;
    t.next_ = first;
    if (first != nullptr) first->previous_ = &t;
    first = &t;
  }
  void unlink(known_thread& t) noexcept {
    lock_guard hold(guard);
    if (!is_of_this_process(t)) return;
    (t.previous_ != nullptr ? t.previous_->next_ : first) = t.next_;
    if (t.next_ != nullptr) t.next_->previous_ = t.previous_;
  }
  [[nodiscard]] bool is_of_this_process(const known_thread& t) const noexcept {
    return t.process_ == process.load(relaxed);
  }
  void see_all(void (*see)(void*, const thread_sight&), void* argument) noexcept {
    lock_guard hold(guard);
    for (const known_thread* t = first; t != nullptr; t = t->next_) {
      // acquire pairs with the release in ~thread_rest and in thread_rest: what the thread did before it began to rest
      // is seen, its wakes among it.
      const void* in = t->rests_in_.load(acquire);
      const bool waits = in == t;
      see(argument, {.id = t->id_,
                     .is_own = t->is_own_.load(relaxed),
                     .rests = in != nullptr && !(waits && t->is_signalled_.load(relaxed)),
                     .closes = waits ? nullptr : in,
                     .number = t->rests_.load(relaxed)});
    }
  }
};

namespace {

constinit thread_list the_threads;
thread_local constinit bool has_ended = false;

}  // namespace

struct known_thread::of_this_thread {
  of_this_thread() noexcept { the_threads.link(entry); }
  ~of_this_thread() {
    the_threads.unlink(entry);
    has_ended = true;  // a destructor of another thread_local may still wait in Weft
  }
  of_this_thread(const of_this_thread&) = delete;
  of_this_thread& operator=(const of_this_thread&) = delete;
  known_thread entry;
};

// noinline and with a barrier, because a task that resumes on another thread must not keep the address of a
// thread_local.
[[gnu::noinline]] known_thread* known_thread::of_caller() noexcept {
  asm volatile("" ::: "memory");
  if (has_ended) return nullptr;
  static thread_local of_this_thread mine;
  if (!the_threads.is_of_this_process(mine.entry)) the_threads.link(mine.entry);
  return &mine.entry;
}

own_thread::own_thread() noexcept : who_(known_thread::of_caller()) {
  if (who_ != nullptr) who_->is_own_.store(true, relaxed);
}
own_thread::~own_thread() {
  if (who_ != nullptr) who_->is_own_.store(false, relaxed);
}

thread_rest::thread_rest(known_thread* who, const void* closes) noexcept : who_(who) {
  if (who == nullptr) return;
  add_alone(who->rests_, 1);
  who->rests_in_.store(closes, release);  // pairs with the acquire in see_all()
  // The fence of base.T3. Mirror: the one in tell_of_rests().
  fence_seq_cst();
  if (the_threads.hears.load(relaxed) == nullptr) return;
  if (auto* hears = the_threads.hears.exchange(nullptr, acquire)) hears();
}
thread_rest::~thread_rest() {
  if (who_ != nullptr) who_->rests_in_.store(nullptr, release);  // pairs with the acquire in see_all()
}

void for_each_known_thread(void (*see)(void*, const thread_sight&), void* argument) noexcept {
  the_threads.see_all(see, argument);
}

void tell_of_rests(void (*hears)() noexcept) noexcept {
  the_threads.hears.store(hears, release);
  // The fence of base.T3. Mirror: the one in thread_rest: either we see that it rests, or it sees that we want to hear of it.
  fence_seq_cst();
}

// The lock may have been held by another thread of the parent, so it is made anew.
void forget_known_threads() noexcept {
  ::new (&the_threads.guard) lock;
  the_threads.first = nullptr;
  the_threads.process.fetch_add(1, relaxed);
  the_threads.hears.store(nullptr, relaxed);
}

}  // namespace weft::inline v1::base
#endif
