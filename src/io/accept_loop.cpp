#include <weft/net/accept_loop.hpp>

#include <fcntl.h>

#include <algorithm>

#include "io/kernel.hpp"
#include <weft/this_task.hpp>

namespace weft::inline v1::net::detail {
namespace {

constexpr std::chrono::milliseconds first_pause{5};
constexpr std::chrono::milliseconds longest_pause{100};

bool is_shortage(const std::error_code& why) noexcept {
  return why == std::errc::too_many_files_open || why == std::errc::too_many_files_open_in_system ||
         why == std::errc::no_buffer_space || why == std::errc::not_enough_memory;
}

int open_spare() noexcept { return io::kernel_of_caller().open("/dev/null", O_RDONLY | O_CLOEXEC, 0); }

}  // namespace

shortage::shortage() : spare_(open_spare()) {}

shortage::~shortage() {
  if (spare_ >= 0) io::kernel_of_caller().close(spare_);
}

// With the spare descriptor there is room for one connection, which is closed at once.
void shortage::give_up_spare(const std::error_code& why) {
  if (!is_shortage(why)) throw std::system_error(why, "accept a connection");
  if (spare_ >= 0) io::kernel_of_caller().close(std::exchange(spare_, -1));
}

void shortage::take_spare() noexcept {
  if (spare_ < 0) spare_ = open_spare();
}

void shortage::pause() {
  pause_ = std::clamp(pause_ * 2, first_pause, longest_pause);
  sleep_for(pause_);
}

}  // namespace weft::inline v1::net::detail
