// Reading and writing a file from front to back. fs.hpp says what holds for all of these.
//
//   weft::fs::reader in(f);
//   while (std::size_t n = in.read_some(room)) …
//
// Both borrow the file and keep a position of their own, so a file may have several. They are for one task at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string_view>
#include <system_error>

#include <weft/fs/file.hpp>

namespace weft::inline v1::fs {

class reader {
 public:
  explicit reader(const file& of, std::uint64_t position = 0) noexcept : file_(&of), position_(position) {}

  // Reads what one call of the kernel gives: 0 at the end of the file. A later call sees what was added meanwhile.
  std::size_t read_some(mutable_buffer to, std::source_location where = std::source_location::current()) {
    return advance(file_->read_some_at(to, position_, where));
  }
  std::size_t read_some(mutable_buffer to, std::error_code& why,
                        std::source_location where = std::source_location::current()) {
    return advance(file_->read_some_at(to, position_, why, where));
  }

  [[nodiscard]] std::string_view name() const noexcept { return file_->name(); }
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  void seek(std::uint64_t position) noexcept { position_ = position; }

 private:
  std::size_t advance(std::size_t n) noexcept {
    position_ += n;
    return n;
  }
  const file* file_;
  std::uint64_t position_;
};

class writer {
 public:
  explicit writer(file& of, std::uint64_t position = 0) noexcept : file_(&of), position_(position) {}

  std::size_t write_some(const_buffer from, std::source_location where = std::source_location::current()) {
    return advance(file_->write_some_at(from, position_, where));
  }
  std::size_t write_some(const_buffer from, std::error_code& why,
                         std::source_location where = std::source_location::current()) {
    return advance(file_->write_some_at(from, position_, why, where));
  }
  // If the form that throws fails, the position stays where it was.
  void write_all(const_buffer from, std::source_location where = std::source_location::current()) {
    file_->write_all_at(from, position_, where);
    advance(from.size());
  }
  std::size_t write_all(const_buffer from, std::error_code& why,
                        std::source_location where = std::source_location::current()) {
    return advance(file_->write_all_at(from, position_, why, where));
  }

  [[nodiscard]] std::string_view name() const noexcept { return file_->name(); }
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  void seek(std::uint64_t position) noexcept { position_ = position; }

 private:
  std::size_t advance(std::size_t n) noexcept {
    position_ += n;
    return n;
  }
  file* file_;
  std::uint64_t position_;
};

}  // namespace weft::inline v1::fs
