#include <weftgz/decompress.hpp>

#include <array>
#include <optional>
#include <utility>
#include <variant>

#include <weft/scope.hpp>

#include <weftgz/cursor.hpp>
#include <weftgz/header.hpp>
#include <weftgz/inflate.hpp>

namespace weftgz {
namespace {

constexpr std::size_t chunk_size = std::size_t{128} << 10;
constexpr std::size_t chunks = 4;  // one is scanned, one is read, and two are between
constexpr std::size_t piece_size = std::size_t{512} << 10;  // of what the scanner inflates itself

struct piece {
  taken_block of;  // its `out` is to be written
  std::uint32_t crc = 0;  // of a whole member, which the crew has checked
  bool whole = false;
  std::optional<trailer> end;  // of the member that ends behind this piece, to be checked by the writer
};
using coming = std::variant<piece, weft::oneshot_reader<piece>>;

class scanner {
 public:
  scanner(cursor in, const weft::writer<coming>& to, shop& with) : in_(std::move(in)), to_(to), shop_(with) {}

  // Returns true if there was garbage behind the last member.
  bool run(const decompression& how) {
    for (bool first = true;; first = false) {
      const start s = find_start(first);
      if (s == start::end) return false;
      if (s == start::other) {
        if (!first) return true;
        if (!how.copy_others) throw not_gzip();
        copy_rest();
        return false;
      }
      const header h = read_header([this] { return in_.next(); });
      if (h.member_size && *h.member_size <= longest_sized_member)
        hand_over(h);
      else
        inflate();
    }
  }

 private:
  enum class start { member, end, other };

  // Zeros behind a member are the padding of tapes and are skipped, as gzip does it.
  start find_start(bool first) {
    int c = in_.next();
    while (!first && c == 0) c = in_.next();
    if (c < 0 && first) throw_unexpected_end();
    if (c < 0) return start::end;
    if (c == 0x1f) {
      const int second = in_.next();
      if (second < 0) throw_unexpected_end();
      if (second == 0x8b) return start::member;
      in_.put_back(std::array{std::byte(second)});
    }
    in_.put_back(std::array{std::byte(c)});
    return start::other;
  }

  void hand_over(const header& h) {
    if (*h.member_size < h.size + trailer_size) throw_bad_format();
    const std::size_t size = *h.member_size - h.size;
    taken_block b = shop_.blocks.take();
    if (in_.fill(b->in.room_for(size).first(size)) < size) throw_unexpected_end();
    b->in.resize(size);
    send(shop_.hands.submit([b = std::move(b)](tool& t) mutable {
      t.inflate_member(b->in.contents(), b->out);
      const trailer end = read_trailer(b->in.contents().last(trailer_size));
      return piece{std::move(b), end.crc, true, std::nullopt};
    }));
  }

  void inflate() {
    inflater_.restart();
    for (bool ended = false; !ended;) {
      taken_block b = shop_.blocks.take();
      const room to = b->out.room_for(piece_size).first(piece_size);
      std::size_t made = 0;
      const auto pass_on = [&](std::optional<trailer> end) {
        b->out.resize(made);
        send(piece{std::move(b), 0, false, end});
      };
      for (;;) {
        // Also without input: ISA-L may hold back output, and all the rest of the input in a word.
        const inflater::step step = inflater_.advance(in_.rest(), to.subspan(made));
        in_.skip(step.used);
        made += step.made;
        if (step.now == inflater::state::needs_room) {
          pass_on(std::nullopt);
          break;
        }
        std::optional<trailer> end;
        ended = step.now == inflater::state::ended;
        if (ended) {
          in_.put_back(inflater_.unused());
          end = next_trailer();
        } else if (in_.more()) {
          continue;
        }
        pass_on(end);
        if (!end) throw_unexpected_end();
        break;
      }
    }
  }

  std::optional<trailer> next_trailer() {
    std::array<std::byte, trailer_size> eight;
    if (in_.fill(eight) < eight.size()) return std::nullopt;
    return read_trailer(eight);
  }

  void copy_rest() {
    while (in_.more()) {
      taken_block b = shop_.blocks.take();
      const std::size_t n = in_.fill(b->out.room_for(piece_size).first(piece_size));
      b->out.resize(n);
      send(piece{std::move(b), 0, false, std::nullopt});
    }
  }

  void send(coming c) { (void)to_.send(std::move(c)); }

  cursor in_;
  const weft::writer<coming>& to_;
  shop& shop_;
  inflater inflater_;
};

void read_chunks(source& in, pool<buffer>& free, weft::writer<chunk>& to) {
  try {
    for (;;) {
      chunk c = free.take();
      const std::size_t n = in.read_some(c->room_for(chunk_size).first(chunk_size));
      c->resize(n);
      if (n == 0 || !to.send(std::move(c))) return;
    }
  } catch (const io_failure&) {
    to.close(std::current_exception());  // the scanner meets it where it stands in the input
  }
}

// Writes first and checks then, so that of a damaged member everything is written that could be read, as gzip does it.
class writing {
 public:
  writing(sink& out, decompressed& sum) : out_(out), sum_(sum) {}
  void take(const piece& p) {
    const bytes data = p.of->out.contents();
    out_.write(data);
    sum_.plain += data.size();
    if (p.whole) {
      sum_.crc = crc_combined(sum_.crc, p.crc, data.size());
      return;
    }
    crc_ = crc_of(crc_, data);
    length_ += data.size();
    if (!p.end) return;
    if (p.end->crc != crc_) throw_bad_crc();
    if (p.end->length != static_cast<std::uint32_t>(length_)) throw_bad_length();
    sum_.crc = crc_combined(sum_.crc, crc_, length_);
    crc_ = 0;
    length_ = 0;
  }

 private:
  sink& out_;
  decompressed& sum_;
  std::uint32_t crc_ = 0;  // of the member that the scanner inflates
  std::uint64_t length_ = 0;
};

struct counted final : source {
  counted(source& of, std::uint64_t& n) : in(of), count(n) {}
  std::size_t read_some(room to) override {
    const std::size_t n = in.read_some(to);
    count += n;
    return n;
  }
  source& in;
  std::uint64_t& count;
};

}  // namespace

decompressed decompress(source& from, sink& out, const decompression& how, shop& with) {
  decompressed sum;
  counted in(from, sum.packed);
  pool<buffer> free(chunks);
  auto [to_scanner, unread] = weft::make_channel<chunk>(chunks);
  auto [to_writer, pieces] = weft::make_channel<coming>(with.depth);
  weft::with_scope(
      [&, &unread = unread, &to_scanner = to_scanner, &to_writer = to_writer, &pieces = pieces](weft::scope& s) {
        s.spawn({.name = "reader"}, [&, to = std::move(to_scanner)]() mutable { read_chunks(in, free, to); });
        s.spawn({.name = "scanner"}, [&, chunks_read = std::move(unread), to = std::move(to_writer)]() mutable {
          try {
            sum.garbage = scanner(cursor(std::move(chunks_read)), to, with).run(how);
          } catch (const std::runtime_error&) {
            to.close(std::current_exception());  // the writer meets it behind everything that stands before it
          }
        });
        writing w(out, sum);
        for (coming& c : pieces) {
          if (auto* later = std::get_if<weft::oneshot_reader<piece>>(&c))
            w.take(later->recv().value());
          else
            w.take(std::get<piece>(c));
        }
      });
  return sum;
}

}  // namespace weftgz
