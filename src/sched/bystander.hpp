// Somebody who observes a runtime from its construction to its end, from a thread of its own.
#pragma once

namespace weft::inline v1::sched {

class bystander {
 public:
  bystander() = default;
  bystander(const bystander&) = delete;
  bystander& operator=(const bystander&) = delete;
  // Called when every task has ended, before the runtime is taken down.
  virtual ~bystander() = default;
};

}  // namespace weft::inline v1::sched
