#include <weftgz/deflate.hpp>

#include <algorithm>
#include <cstring>
#include <new>

#include <libdeflate.h>
#include <zlib.h>

#include <weftgz/failure.hpp>
#include <weftgz/header.hpp>

namespace weftgz {
namespace {

struct freeing {
  void operator()(libdeflate_compressor* c) const noexcept { libdeflate_free_compressor(c); }
  void operator()(libdeflate_decompressor* d) const noexcept { libdeflate_free_decompressor(d); }
  void operator()(z_stream* z) const noexcept {
    deflateEnd(z);
    delete z;
  }
};

Bytef* zlib_bytes(bytes b) noexcept { return reinterpret_cast<Bytef*>(const_cast<std::byte*>(b.data())); }

// Of an empty part, and more than deflateBound tells for one that is flushed and not finished.
constexpr std::size_t for_a_flush = 64;

// A byte of a deflate stream stands for at most 1032 bytes, so a trailer that says more is wrong.
constexpr std::size_t most_per_byte = 1032;

}  // namespace

struct tool::state {
  std::unique_ptr<libdeflate_compressor, freeing> compressor;
  std::unique_ptr<libdeflate_decompressor, freeing> decompressor;
  std::unique_ptr<z_stream, freeing> zlib;
};

tool::tool() : state_(std::make_unique<state>()) {}
tool::~tool() = default;

void tool::make_member(bytes in, std::string_view header, bool sized, int level, buffer& out) {
  auto& c = state_->compressor;
  if (!c) c.reset(libdeflate_alloc_compressor(libdeflate_level(level)));
  if (!c) throw std::bad_alloc();
  const std::size_t bound = libdeflate_deflate_compress_bound(c.get(), in.size());
  const room to = out.room_for(header.size() + bound + trailer_size);
  std::memcpy(to.data(), header.data(), header.size());
  const std::size_t body = libdeflate_deflate_compress(c.get(), in.data(), in.size(), to.data() + header.size(), bound);
  if (body == 0) throw std::logic_error("libdeflate needs more room than it said");
  const std::size_t end = header.size() + body;
  write_trailer(to.subspan(end, trailer_size), {crc_of(0, in), static_cast<std::uint32_t>(in.size())});
  out.resize(end + trailer_size);
  if (sized) set_member_size(to.first(out.size()));
}

std::uint32_t tool::make_part(bytes in, bytes dictionary, int level, buffer& out) {
  auto& z = state_->zlib;
  if (!z) {
    auto fresh = std::make_unique<z_stream>();
    if (deflateInit2(fresh.get(), std::min(level, 9), Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
    z.reset(fresh.release());
  } else {
    deflateReset(z.get());
  }
  if (!dictionary.empty()) deflateSetDictionary(z.get(), zlib_bytes(dictionary), static_cast<uInt>(dictionary.size()));
  const room to = out.room_for(deflateBound(z.get(), static_cast<uLong>(in.size())) + for_a_flush);
  z->next_in = zlib_bytes(in);
  z->avail_in = static_cast<uInt>(in.size());
  z->next_out = zlib_bytes(to);
  z->avail_out = static_cast<uInt>(to.size());
  if (deflate(z.get(), Z_SYNC_FLUSH) != Z_OK || z->avail_in != 0 || z->avail_out == 0)
    throw std::logic_error("zlib needs more room than it said");
  out.resize(to.size() - z->avail_out);
  return crc_of(0, in);
}

void tool::inflate_member(bytes body_and_trailer, buffer& out) {
  auto& d = state_->decompressor;
  if (!d) d.reset(libdeflate_alloc_decompressor());
  if (!d) throw std::bad_alloc();
  if (body_and_trailer.size() < trailer_size) throw_bad_format();
  const bytes body = body_and_trailer.first(body_and_trailer.size() - trailer_size);
  const trailer end = read_trailer(body_and_trailer.last(trailer_size));
  // The room comes from a number of the input, so it is checked against what can be true.
  if (end.length > body.size() * most_per_byte || end.length > longest_sized_member) throw_bad_length();
  const room to = out.room_for(std::max<std::size_t>(end.length, 1));
  std::size_t used = 0, made = 0;
  switch (libdeflate_deflate_decompress_ex(d.get(), body.data(), body.size(), to.data(), end.length, &used, &made)) {
    case LIBDEFLATE_SUCCESS: break;
    case LIBDEFLATE_INSUFFICIENT_SPACE: throw_bad_length();
    default: throw_bad_format();
  }
  if (used != body.size()) throw_bad_format();
  if (made != end.length) throw_bad_length();
  out.resize(made);
  if (crc_of(0, out.contents()) != end.crc) throw_bad_crc();
}

std::uint32_t crc_of(std::uint32_t before, bytes b) noexcept {
  return b.empty() ? before : libdeflate_crc32(before, b.data(), b.size());  // which takes a null pointer for a start
}

std::uint32_t crc_combined(std::uint32_t first, std::uint32_t second, std::size_t size_of_second) noexcept {
  return static_cast<std::uint32_t>(crc32_combine(first, second, static_cast<z_off_t>(size_of_second)));
}

}  // namespace weftgz
