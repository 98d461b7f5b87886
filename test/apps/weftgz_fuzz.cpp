// Feeds damaged gzip files to weftgz's decompression and compares with zlib's inflate: what zlib accepts has to come out
// the same, and what zlib refuses has to be refused. The mutations follow from a seed, which a failure prints;
// WEFTGZ_FUZZ_SEED=n runs it again, with WEFTGZ_FUZZ_SAVE=file the input is written there, and WEFT_TEST_LONG=1 runs for a
// minute.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <zlib.h>

#include <weft/weft.hpp>

#include <weftgz/compress.hpp>
#include <weftgz/decompress.hpp>
#include <weftgz/failure.hpp>

#include "support/watchdog.hpp"

namespace {

using namespace weftgz;
using lots = std::mt19937_64;

// Gives pieces of changing sizes, so that every boundary falls everywhere sometimes.
class memory_source final : public source {
 public:
  memory_source(const std::string& from, std::uint64_t seed) : left_(std::as_bytes(std::span(from))), lots_(seed) {}
  std::size_t read_some(room to) override {
    const std::size_t most = lots_() % 4 == 0 ? 1 + lots_() % 7 : 1 + lots_() % 5000;
    const std::size_t n = std::min({to.size(), left_.size(), most});
    std::memcpy(to.data(), left_.data(), n);
    left_ = left_.subspan(n);
    return n;
  }

 private:
  bytes left_;
  lots lots_;
};

class memory_sink final : public sink {
 public:
  void write(bytes from) override { text.append(reinterpret_cast<const char*>(from.data()), from.size()); }
  std::string text;
};

struct verdict {
  bool good = false, garbage = false;
  bool odd_code = false;  // refused for a Huffman code that leaves some sequences of bits without a meaning
  std::string text;
};

verdict of_weftgz(const std::string& packed, std::uint64_t seed, shop& with) {
  memory_source in(packed, seed);
  memory_sink out;
  try {
    const decompressed d = decompress(in, out, {}, with);
    return {.good = true, .garbage = d.garbage, .odd_code = false, .text = std::move(out.text)};
  } catch (const bad_input&) {
    return {};
  }
}

// Members one behind the other, then zeros, then garbage: the rules of gzip, with zlib for each member.
verdict of_zlib(const std::string& packed) {
  verdict v;
  std::size_t at = 0;
  for (bool first = true;; first = false) {
    while (!first && at < packed.size() && packed[at] == 0) ++at;
    if (at == packed.size()) {
      v.good = !first;
      return v;
    }
    const bool is_start = packed[at] == '\x1f' && (at + 1 == packed.size() || packed[at + 1] == '\x8b');
    if (!is_start) {
      v.good = v.garbage = !first;
      return v;
    }
    z_stream z{};
    if (inflateInit2(&z, 31) != Z_OK) std::abort();
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + at));
    z.avail_in = static_cast<uInt>(packed.size() - at);
    int how = Z_OK;
    while (how == Z_OK) {
      char room[65536];
      z.next_out = reinterpret_cast<Bytef*>(room);
      z.avail_out = sizeof room;
      how = inflate(&z, Z_NO_FLUSH);
      v.text.append(room, sizeof room - z.avail_out);
    }
    at = packed.size() - z.avail_in;
    const bool odd_code = z.msg != nullptr && std::string_view(z.msg).ends_with(" set");
    inflateEnd(&z);
    if (how != Z_STREAM_END) return {.good = false, .garbage = false, .odd_code = odd_code, .text = {}};
  }
}

// A header that says how long its member is. If that is damaged, weftgz may refuse what zlib accepts.
bool has_sizes(const std::string& packed) {
  return packed.find(std::string("WG\x04\x00", 4)) != std::string::npos ||
         packed.find(std::string("BC\x02\x00", 4)) != std::string::npos;
}

std::string sample_text(std::size_t size, lots& lot) {
  std::string s;
  while (s.size() < size) {
    if (!s.empty() && lot() % 3 != 0) {
      const std::size_t from = lot() % s.size();
      s += s.substr(from, 3 + lot() % 60);
    } else {
      s.push_back(static_cast<char>(lot() % 64 + 32));
    }
  }
  return s;
}

std::string by_zlib(const std::string& text, int level, int strategy, bool fields) {
  z_stream z{};
  if (deflateInit2(&z, level, Z_DEFLATED, 31, 8, strategy) != Z_OK) std::abort();
  gz_header h{};
  char name[] = "name", comment[] = "a comment";
  Bytef extra[] = {'X', 'Y', 2, 0, 'a', 'b'};
  if (fields) {
    h.name = reinterpret_cast<Bytef*>(name);
    h.comment = reinterpret_cast<Bytef*>(comment);
    h.extra = extra;
    h.extra_len = sizeof extra;
    h.hcrc = 1;
    deflateSetHeader(&z, &h);
  }
  std::string out(deflateBound(&z, text.size()) + 100, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  if (deflate(&z, Z_FINISH) != Z_STREAM_END) std::abort();
  out.resize(out.size() - z.avail_out);
  deflateEnd(&z);
  return out;
}

std::string by_weftgz(const std::string& text, bool single, shop& with) {
  memory_source in(text, 1);
  memory_sink out;
  compression how;
  how.block_size = 4096;
  how.single = single;
  how.name = "name";
  compress(in, out, how, with);
  return std::move(out.text);
}

std::vector<std::string> samples(shop& with) {
  lots lot(1);
  std::vector<std::string> all;
  const std::string text = sample_text(20'000, lot), little = sample_text(300, lot);
  for (const bool fields : {false, true})
    for (const std::string& t : {text, little, std::string()}) {
      all.push_back(by_zlib(t, 6, Z_DEFAULT_STRATEGY, fields));
      all.push_back(by_zlib(t, 0, Z_DEFAULT_STRATEGY, fields));
      all.push_back(by_zlib(t, 6, Z_FIXED, fields));
    }
  for (const bool single : {false, true})
    for (const std::string& t : {text, little, std::string()}) all.push_back(by_weftgz(t, single, with));
  all.push_back(by_zlib(std::string(3'000'000, 'z'), 6, Z_DEFAULT_STRATEGY, false));  // many pieces of output
  const std::size_t kinds = all.size();
  for (int i = 0; i < 12; ++i) all.push_back(all[lot() % kinds] + all[lot() % kinds]);
  return all;
}

std::string mutated(std::string s, const std::vector<std::string>& all, lots& lot) {
  for (std::uint64_t steps = lot() % 4; steps > 0 && !s.empty(); --steps) {
    // Most of what can go wrong stands at the beginning and at the end.
    const std::size_t near = std::min<std::size_t>(s.size(), 40);
    const std::size_t at = lot() % 3 == 0   ? lot() % near
                           : lot() % 2 == 0 ? s.size() - 1 - lot() % near
                                            : lot() % s.size();
    switch (lot() % 8) {
      case 0: s[at] = static_cast<char>(lot()); break;
      case 1: s[at] = static_cast<char>(s[at] ^ (1 << lot() % 8)); break;
      case 2: s.resize(at); break;
      case 3: s.insert(at, 1 + lot() % 9, static_cast<char>(lot())); break;
      case 4: s.erase(at, 1 + lot() % 9); break;
      case 5: s += all[lot() % all.size()]; break;
      case 6: s.append(lot() % 600, '\0'); break;
      default: s.replace(at, std::string::npos, all[lot() % all.size()]); break;
    }
  }
  return s;
}

// req: CC-17
TEST(WeftgzFuzz, DamagedInputIsJudgedAsZlibJudgesIt) {
  const char* given = std::getenv("WEFTGZ_FUZZ_SEED");
  const char* is_long = std::getenv("WEFT_TEST_LONG");
  const std::uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  const bool for_a_minute = given == nullptr && is_long != nullptr && std::string(is_long) == "1";
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  const support::watchdog guard(std::chrono::minutes(4), "every input is judged");
  support::watched_runtime rt;
  rt->run([&] {
    shop with(2);
    const std::vector<std::string> all = samples(with);
    for (const std::string& s : all) ASSERT_TRUE(of_weftgz(s, 1, with).good);
    int good = 0, refused = 0;
    const std::uint64_t last = given != nullptr ? first : 4000;
    for (std::uint64_t seed = first; seed <= last || (for_a_minute && std::chrono::steady_clock::now() < end); ++seed) {
      // No SCOPED_TRACE: it belongs to a thread, and a task may change its thread.
      const std::string again = "WEFTGZ_FUZZ_SEED=" + std::to_string(seed);
      lots lot(seed);
      const std::string packed = mutated(all[lot() % all.size()], all, lot);
      if (const char* to = std::getenv("WEFTGZ_FUZZ_SAVE")) {
        std::FILE* f = std::fopen(to, "wb");
        std::fwrite(packed.data(), 1, packed.size(), f);
        std::fclose(f);
      }
      const verdict ours = of_weftgz(packed, seed, with), theirs = of_zlib(packed);
      ++(theirs.good ? good : refused);
      if (!ours.good && theirs.good && has_sizes(packed)) continue;
      // ISA-L and libdeflate take some codes that zlib refuses. No harm is done: CRC and length were right.
      if (ours.good && theirs.odd_code) continue;
      ASSERT_EQ(ours.good, theirs.good) << again;
      ASSERT_EQ(ours.garbage, theirs.garbage) << again;
      ASSERT_TRUE(ours.text == theirs.text) << again;
    }
    if (given == nullptr) {
      EXPECT_GT(good, 500);  // or it shows nothing
      EXPECT_GT(refused, 500);
    }
  });
}

}  // namespace
