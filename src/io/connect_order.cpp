#include "io/connect_order.hpp"

#include <algorithm>

namespace weft::inline v1::io {

using net::address_family;
using net::endpoint;

std::vector<endpoint> connect_order(const std::vector<endpoint>& resolved) {
  std::vector<endpoint> first;
  std::vector<endpoint> second;
  std::vector<endpoint> others;
  const auto is_internet = [](const endpoint& e) {
    return e.family() == address_family::v4 || e.family() == address_family::v6;
  };
  const auto preferred = std::ranges::find_if(resolved, is_internet);
  for (const endpoint& e : resolved) {
    if (!is_internet(e))
      others.push_back(e);
    else
      (e.family() == preferred->family() ? first : second).push_back(e);
  }
  std::vector<endpoint> order;
  order.reserve(resolved.size());
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) order.push_back(first[i]);
    if (i < second.size()) order.push_back(second[i]);
  }
  order.insert(order.end(), others.begin(), others.end());
  return order;
}

std::optional<std::size_t> connect_attempts::next(clock::time_point now) noexcept {
  if (begun_ == addresses_ || now < next_time_) return std::nullopt;
  next_time_ = delay_ < clock::time_point::max() - now ? now + delay_ : clock::time_point::max();
  return begun_++;
}

connect_attempts::clock::time_point connect_attempts::next_time() const noexcept {
  return begun_ == addresses_ ? clock::time_point::max() : next_time_;
}

void connect_attempts::failed(std::size_t address, std::error_code why) noexcept {
  ++failed_;
  next_time_ = clock::time_point::min();
  if (address >= error_of_) return;
  error_of_ = address;
  error_ = why;
}

}  // namespace weft::inline v1::io
