// What is in a directory, and below it. fs.hpp says what holds for all of these.
//
//   for (const weft::fs::entry& e : weft::fs::walk("src"))
//     if (e.type == std::filesystem::file_type::regular) …
//
// Entries are read many at a time, so that one turn of blocking() serves many. Their order is that of the file system.
#pragma once

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <source_location>
#include <system_error>
#include <utility>
#include <vector>

#include <weft/detail/config.hpp>

namespace weft::inline v1 {

namespace io {
class directory_walk;
struct walk_closer {
  WEFT_API void operator()(directory_walk* w) const noexcept;
};
}  // namespace io

namespace fs {

struct entry {
  std::filesystem::path path;  // begins with the path that was asked for
  std::filesystem::file_type type = std::filesystem::file_type::none;  // a symbolic link is not followed
  std::size_t depth = 0;  // how many directories below the one that was asked for
};

// The entries of one directory, without "." and "..".
[[nodiscard]] WEFT_API std::vector<entry> list(const std::filesystem::path& directory,
                                               std::source_location where = std::source_location::current());
// Returns what was found before the error.
[[nodiscard]] WEFT_API std::vector<entry> list(const std::filesystem::path& directory, std::error_code& why,
                                               std::source_location where = std::source_location::current());

// A walk through a directory and all directories below it; symbolic links are not entered. A directory comes before
// what is in it. One directory is open at a time. A directory that vanishes before it is entered counts as empty. For
// one task at a time.
class WEFT_API walker {
 public:
  // The next entry, or nothing at the end. An error concerns one directory: the walk goes on behind it if it is asked
  // again.
  [[nodiscard]] std::optional<entry> next(std::source_location where = std::source_location::current()) {
    return advance(nullptr, where);
  }
  [[nodiscard]] std::optional<entry> next(std::error_code& why,
                                          std::source_location where = std::source_location::current()) {
    return advance(&why, where);
  }
  // The entry that next() returned last is not entered, if it is a directory. Never a cancellation point.
  void skip() noexcept;

  // For a range-for. Its errors are thrown.
  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = entry;
    using difference_type = std::ptrdiff_t;

    [[nodiscard]] const entry& operator*() const noexcept { return *current_; }
    [[nodiscard]] const entry* operator->() const noexcept { return &*current_; }
    iterator& operator++() {
      current_ = walk_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    [[nodiscard]] friend bool operator==(const iterator& i, std::default_sentinel_t) noexcept { return !i.current_; }

   private:
    friend class walker;
    explicit iterator(walker& w) : walk_(&w), current_(w.next()) {}
    walker* walk_;
    std::optional<entry> current_;
  };
  [[nodiscard]] iterator begin() { return iterator(*this); }
  [[nodiscard]] static std::default_sentinel_t end() noexcept { return {}; }

 private:
  friend WEFT_API walker walk(const std::filesystem::path& directory, std::source_location where);
  friend WEFT_API walker walk(const std::filesystem::path& directory, std::error_code& why, std::source_location where);
  walker() noexcept = default;
  void start(const std::filesystem::path& directory, std::error_code* why, std::source_location where);
  [[nodiscard]] std::optional<entry> advance(std::error_code* why, std::source_location where);

  std::unique_ptr<io::directory_walk, io::walk_closer> core_;
};

// Fails if the directory itself cannot be read.
[[nodiscard]] WEFT_API walker walk(const std::filesystem::path& directory,
                                   std::source_location where = std::source_location::current());
[[nodiscard]] WEFT_API walker walk(const std::filesystem::path& directory, std::error_code& why,
                                   std::source_location where = std::source_location::current());

}  // namespace fs
}  // namespace weft::inline v1
