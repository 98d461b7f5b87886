// The smallest fiber on top of the context layer, for its tests: a function on a stack that is resumed and suspends.
#pragma once

#include <functional>
#include <utility>

#include "context/annotate.hpp"
#include "context/stack.hpp"
#include "context/switch.hpp"

namespace weft_test {

namespace context = weft::context;

class fiber {
 public:
  fiber(context::stack& on, std::function<void(fiber&)> body) : stack_(on), body_(std::move(body)) {
    stack_.annotations.start_on(stack_);
    sp_ = context::prepare(stack_.top(), [](void* self) { static_cast<fiber*>(self)->run(); });
  }
  ~fiber() { stack_.annotations.end(); }
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;

  // From any thread; returns when the body suspends or ends.
  void resume() {
    context::flow thread;
    thread.adopt_thread();
    resume_from(thread);
  }
  // From another fiber: resume_from(self.on().annotations).
  void resume_from(context::flow& resumer) {
    resumer_ = &resumer;
    context::switch_flow(&resumer_sp_, resumer, sp_, stack_.annotations, this);
  }
  // Inside the body.
  void suspend() { context::switch_flow(&sp_, stack_.annotations, resumer_sp_, *resumer_, this); }

  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] const void* sp() const { return sp_; }
  [[nodiscard]] context::stack& on() const { return stack_; }

 private:
  void run() {
    context::entered(stack_.annotations);
    body_(*this);
    done_ = true;
    context::switch_flow(&sp_, stack_.annotations, resumer_sp_, *resumer_, this, true);
  }

  context::stack& stack_;
  std::function<void(fiber&)> body_;
  void* sp_ = nullptr;
  void* resumer_sp_ = nullptr;
  context::flow* resumer_ = nullptr;
  bool done_ = false;
};

// A stack from the pool for the length of a block.
class borrowed_stack {
 public:
  explicit borrowed_stack(context::stack_pool& pool, std::size_t size = context::default_stack)
      : pool_(pool),
        stack_(pool.acquire(size)) {}
  ~borrowed_stack() {
    if (stack_ != nullptr) pool_.release(stack_);
  }
  borrowed_stack(const borrowed_stack&) = delete;
  borrowed_stack& operator=(const borrowed_stack&) = delete;
  context::stack& operator*() const { return *stack_; }
  context::stack* operator->() const { return stack_; }

 private:
  context::stack_pool& pool_;
  context::stack* stack_;
};

}  // namespace weft_test
