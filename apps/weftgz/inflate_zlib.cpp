#include <weftgz/inflate.hpp>

#include <algorithm>
#include <climits>
#include <new>

#include <zlib.h>

#include <weftgz/failure.hpp>

namespace weftgz {

struct inflater::core {
  z_stream z{};
};

inflater::inflater() : core_(std::make_unique<core>()) {
  if (inflateInit2(&core_->z, -15) != Z_OK) throw std::bad_alloc();
}
inflater::~inflater() { inflateEnd(&core_->z); }

void inflater::restart() { inflateReset(&core_->z); }

inflater::step inflater::advance(bytes in, room out) {
  z_stream& z = core_->z;
  const auto given = static_cast<uInt>(std::min<std::size_t>(in.size(), UINT_MAX));
  const auto wanted = static_cast<uInt>(std::min<std::size_t>(out.size(), UINT_MAX));
  z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
  z.avail_in = given;
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = wanted;
  const int how = inflate(&z, Z_NO_FLUSH);
  if (how == Z_MEM_ERROR) throw std::bad_alloc();
  if (how != Z_OK && how != Z_STREAM_END && how != Z_BUF_ERROR) throw_bad_format();
  const state now = how == Z_STREAM_END ? state::ended : z.avail_out == 0 ? state::needs_room : state::needs_input;
  return {given - z.avail_in, wanted - z.avail_out, now};
}

bytes inflater::unused() const noexcept { return {}; }

}  // namespace weftgz
