// Inflates a raw deflate stream piece by piece, for members that do not say how long they are. There are two of it, and
// CMake chooses: inflate_isal.cpp and inflate_zlib.cpp.
#pragma once

#include <cstddef>
#include <memory>

#include <weftgz/buffer.hpp>

namespace weftgz {

class inflater {
 public:
  inflater();
  ~inflater();
  inflater(const inflater&) = delete;
  inflater& operator=(const inflater&) = delete;

  void restart();

  enum class state { needs_input, needs_room, ended };
  struct step {
    std::size_t used, made;
    state now;
  };
  // Throws bad_input. An inflater may have used more bytes than the stream has; unused() are the last of those.
  [[nodiscard]] step advance(bytes in, room out);
  // After the end: bytes that were used and stand behind the stream. At most 8.
  [[nodiscard]] bytes unused() const noexcept;

 private:
  struct core;
  std::unique_ptr<core> core_;
};

}  // namespace weftgz
