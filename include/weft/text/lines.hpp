// The lines of a stream as a range (text.hpp).
#pragma once

#include <cstddef>
#include <iterator>
#include <optional>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <utility>

#include <weft/text/buffered_reader.hpp>

namespace weft::inline v1 {

// An input range of std::string_view. A line is valid until the next one is read: copy what you keep. Errors are thrown.
template <class Reader>
class line_range {
 public:
  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;

    [[nodiscard]] std::string_view operator*() const noexcept { return *line_; }
    iterator& operator++() {
      line_ = of_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    [[nodiscard]] friend bool operator==(const iterator& i, std::default_sentinel_t) noexcept { return !i.line_; }

   private:
    friend class line_range;
    explicit iterator(line_range& of) : of_(&of), line_(of.next()) {}
    line_range* of_;
    std::optional<std::string_view> line_;
  };

  template <class... Rest>
  explicit line_range(std::source_location where, Rest&&... rest)
      : reader_(std::forward<Rest>(rest)...),
        where_(where) {}

  [[nodiscard]] iterator begin() { return iterator(*this); }  // reads the first line
  [[nodiscard]] static std::default_sentinel_t end() noexcept { return {}; }

 private:
  [[nodiscard]] std::optional<std::string_view> next() { return reader().read_line(where_); }
  [[nodiscard]] std::remove_reference_t<Reader>& reader() noexcept { return reader_; }
  detail::held_stream<Reader> reader_;
  std::source_location where_;
};

// The range owns its buffer, and the stream if it gets it by std::move. If the loop is left early, what was read ahead
// goes with the range: make a buffered_reader and ask for its lines, if you want to read on afterwards.
template <readable_stream Stream>
[[nodiscard]] auto lines(Stream&& s, const reading_options& o = {},
                         std::source_location where = std::source_location::current()) {
  return line_range<buffered_reader<Stream>>(where, std::forward<Stream>(s), o);
}
// The lines that a reader has not given out yet.
template <class Stream>
[[nodiscard]] auto lines(buffered_reader<Stream>& r, std::source_location where = std::source_location::current()) {
  return line_range<buffered_reader<Stream>&>(where, r);
}
template <class Stream>
[[nodiscard]] auto lines(buffered_reader<Stream>&& r, std::source_location where = std::source_location::current()) {
  return line_range<buffered_reader<Stream>>(where, std::move(r));
}

}  // namespace weft::inline v1
