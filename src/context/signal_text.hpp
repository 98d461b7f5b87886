// Text for a signal handler: built in a fixed buffer, written with write(2), no allocation, no locale, no stdio.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weft::inline v1::context {

class signal_text {
 public:
  signal_text& operator<<(const char* s) noexcept { return append(s, std::strlen(s)); }
  signal_text& operator<<(std::size_t number) noexcept { return append_number(number, 10); }
  signal_text& operator<<(const void* address) noexcept {
    return (*this << "0x").append_number(reinterpret_cast<std::uintptr_t>(address), 16);
  }

  signal_text& append(const char* s, std::size_t length) noexcept {
    if (length > sizeof buffer_ - length_) length = sizeof buffer_ - length_;
    std::memcpy(buffer_ + length_, s, length);
    length_ += length;
    return *this;
  }

  void write_to(int fd) noexcept {
    for (std::size_t done = 0; done < length_;) {
      const ssize_t n = ::write(fd, buffer_ + done, length_ - done);
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    length_ = 0;
  }

 private:
  signal_text& append_number(std::uintptr_t number, unsigned radix) noexcept {
    char digits[20];
    std::size_t at = sizeof digits;
    do digits[--at] = "0123456789abcdef"[number % radix];
    while ((number /= radix) != 0);
    return append(digits + at, sizeof digits - at);
  }

  std::size_t length_ = 0;
  char buffer_[1024];
};

}  // namespace weft::inline v1::context
