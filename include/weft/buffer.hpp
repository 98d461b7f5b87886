// The memory that I/O reads into and writes from: whatever holds characters or bytes in a row converts to these.
//
//   char room[4096];          std::size_t n = stream.read_some(room);
//   std::string answer = …;   stream.write_all(answer);
#pragma once

#include <concepts>
#include <cstddef>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>

#include <weft/detail/config.hpp>

namespace weft::inline v1 {

namespace detail {

template <class T>
concept byte_like = std::same_as<std::remove_cv_t<T>, char> || std::same_as<std::remove_cv_t<T>, unsigned char> ||
                    std::same_as<std::remove_cv_t<T>, std::byte>;
template <class R>
concept byte_range = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                     byte_like<std::remove_reference_t<std::ranges::range_reference_t<R>>>;
template <class R>
concept writable_byte_range =
    byte_range<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;
// A string literal, whose last character is not meant.
template <class R>
concept literal = std::is_array_v<std::remove_reference_t<R>> &&
                  std::same_as<std::remove_extent_t<std::remove_reference_t<R>>, const char>;

}  // namespace detail

class mutable_buffer {
 public:
  constexpr mutable_buffer(void* data, std::size_t size) noexcept : data_(static_cast<std::byte*>(data)), size_(size) {}
  template <detail::writable_byte_range R>
  constexpr mutable_buffer(R&& range) noexcept
      : data_(reinterpret_cast<std::byte*>(std::ranges::data(range))),
        size_(std::ranges::size(range)) {}

  [[nodiscard]] constexpr std::byte* data() const noexcept { return data_; }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
  // What is left behind the first n bytes.
  [[nodiscard]] constexpr mutable_buffer after(std::size_t n) const noexcept { return {data_ + n, size_ - n}; }

 private:
  std::byte* data_;
  std::size_t size_;
};

class const_buffer {
 public:
  constexpr const_buffer(const void* data, std::size_t size) noexcept
      : data_(static_cast<const std::byte*>(data)),
        size_(size) {}
  constexpr const_buffer(mutable_buffer b) noexcept : data_(b.data()), size_(b.size()) {}
  // A string literal without the zero at its end.
  template <detail::literal L>
  constexpr const_buffer(L&& text) noexcept : const_buffer(std::string_view(text)) {}
  template <detail::byte_range R>
    requires(!detail::literal<R>)
  constexpr const_buffer(R&& range) noexcept
      : data_(reinterpret_cast<const std::byte*>(std::ranges::data(range))),
        size_(std::ranges::size(range)) {}

  [[nodiscard]] constexpr const std::byte* data() const noexcept { return data_; }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
  [[nodiscard]] constexpr const_buffer after(std::size_t n) const noexcept { return {data_ + n, size_ - n}; }

 private:
  const std::byte* data_;
  std::size_t size_;
};

}  // namespace weft::inline v1
