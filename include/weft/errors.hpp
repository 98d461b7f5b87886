#pragma once

#include <stdexcept>
#include <string>

#include <weft/detail/config.hpp>

namespace weft::inline v1 {

// A call that has no meaning: joining twice, using a moved-from handle, a null callable, spawning outside of a runtime.
class WEFT_API usage_error : public std::logic_error {
 public:
  explicit usage_error(const std::string& what);
  ~usage_error() override;
};

// The runtime has begun to shut down and takes no more tasks from outside.
class WEFT_API runtime_stopped : public std::runtime_error {
 public:
  runtime_stopped();
  ~runtime_stopped() override;
};

}  // namespace weft::inline v1
