#include <weftgz/compress.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <weft/scope.hpp>

#include <weftgz/header.hpp>

namespace weftgz {
namespace {

struct piece {
  taken_block of;  // its `out` is to be written
  std::uint32_t crc = 0;  // of the input; for parts of a single member only
  std::size_t plain = 0;
};
using coming = weft::oneshot_reader<piece>;
using queue = weft::writer<coming>;

[[nodiscard]] bytes as_bytes(std::string_view s) noexcept { return std::as_bytes(std::span(s)); }

// Every block becomes a member. Empty input is one, too. Only the first has the name.
void read_members(source& in, const compression& how, shop& with, const queue& to) {
  const bool sized = how.block_size <= longest_sized_member / 2;
  header_fields fields{how.modified, how.name, how.level, sized};
  for (bool first = true;; first = false) {
    taken_block b = with.blocks.take();
    const std::size_t n = in.fill(b->in.room_for(how.block_size).first(how.block_size));
    if (n == 0 && !first) return;
    b->in.resize(n);
    auto made =
        with.hands.submit([b = std::move(b), header = make_header(fields), sized, level = how.level](tool& t) mutable {
          t.make_member(b->in.contents(), header, sized, level, b->out);
          const std::size_t plain = b->in.size();
          return piece{std::move(b), 0, plain};
        });
    if (!to.send(std::move(made)) || n < how.block_size) return;
    fields.name = {};
    fields.modified = 0;
  }
}

// Every block becomes a part of the one deflate stream. It stands in its buffer behind the end of the block before it,
// which is its dictionary.
void read_parts(source& in, const compression& how, shop& with, const queue& to) {
  std::array<std::byte, dictionary_size> before;
  std::size_t before_size = 0;
  for (;;) {
    taken_block b = with.blocks.take();
    const room space = b->in.room_for(dictionary_size + how.block_size);
    std::memcpy(space.data(), before.data(), before_size);
    const std::size_t n = in.fill(space.subspan(before_size, how.block_size));
    if (n == 0) return;
    b->in.resize(before_size + n);
    const std::size_t dictionary = before_size;
    if (!how.independent) {
      before_size = std::min(b->in.size(), dictionary_size);
      std::memcpy(before.data(), b->in.contents().last(before_size).data(), before_size);
    }
    auto made = with.hands.submit([b = std::move(b), dictionary, level = how.level](tool& t) mutable {
      const bytes all = b->in.contents();
      const std::uint32_t crc = t.make_part(all.subspan(dictionary), all.first(dictionary), level, b->out);
      return piece{std::move(b), crc, all.size() - dictionary};
    });
    if (!to.send(std::move(made)) || n < how.block_size) return;
  }
}

}  // namespace

totals compress(source& in, sink& out, const compression& how, shop& with) {
  totals sum;
  std::uint32_t crc = 0;
  const auto write = [&](bytes b) {
    out.write(b);
    sum.packed += b.size();
  };
  auto [to, pieces] = weft::make_channel<coming>(with.depth);
  weft::with_scope([&, &pieces = pieces, &to = to](weft::scope& s) {
    s.spawn({.name = "reader"}, [&, to = std::move(to)] {
      if (how.single)
        read_parts(in, how, with, to);
      else
        read_members(in, how, with, to);
    });
    if (how.single) write(as_bytes(make_header({how.modified, how.name, how.level, false})));
    for (coming& c : pieces) {
      const piece p = c.recv().value();
      write(p.of->out.contents());
      crc = crc_combined(crc, p.crc, p.plain);
      sum.plain += p.plain;
    }
    if (!how.single) return;
    std::array<std::byte, trailer_size> end;
    write_trailer(end, {crc, static_cast<std::uint32_t>(sum.plain)});
    write(as_bytes(end_of_parts));
    write(end);
  });
  return sum;
}

}  // namespace weftgz
