#include <weftgz/inflate.hpp>

#include <algorithm>
#include <array>
#include <climits>

#include <isa-l/igzip_lib.h>

#include <weftgz/failure.hpp>

namespace weftgz {

struct inflater::core {
  inflate_state s;
  std::array<std::byte, 8> unused;
  std::size_t unused_size = 0;

  // ISA-L takes up to eight bytes into a word before it needs them. At the end of the stream the rest of the last byte is
  // padding, and whole bytes behind it belong to what follows.
  void find_unused() noexcept {
    const auto bits = static_cast<unsigned>(std::max(s.read_in_length, 0));
    std::uint64_t word = s.read_in >> (bits % 8);
    unused_size = bits / 8;
    for (std::size_t i = 0; i < unused_size; ++i, word >>= 8) unused[i] = static_cast<std::byte>(word);
  }
};

inflater::inflater() : core_(std::make_unique<core>()) { isal_inflate_init(&core_->s); }
inflater::~inflater() = default;

void inflater::restart() {
  isal_inflate_reset(&core_->s);
  core_->unused_size = 0;
}

inflater::step inflater::advance(bytes in, room out) {
  inflate_state& s = core_->s;
  const auto given = static_cast<std::uint32_t>(std::min<std::size_t>(in.size(), INT_MAX));
  const auto wanted = static_cast<std::uint32_t>(std::min<std::size_t>(out.size(), INT_MAX));
  s.next_in = reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(in.data()));
  s.avail_in = given;
  s.next_out = reinterpret_cast<std::uint8_t*>(out.data());
  s.avail_out = wanted;
  if (isal_inflate(&s) < 0) throw_bad_format();
  step done{given - s.avail_in, wanted - s.avail_out, state::needs_input};
  if (s.block_state == ISAL_BLOCK_FINISH) {
    done.now = state::ended;
    core_->find_unused();
  } else if (s.avail_out == 0) {
    done.now = state::needs_room;
  }
  return done;
}

bytes inflater::unused() const noexcept { return bytes(core_->unused).first(core_->unused_size); }

}  // namespace weftgz
