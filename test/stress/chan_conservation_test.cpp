// Ten million values through channels of every kind: each arrives once. WEFT_TEST_LONG=1: a thousand million.
// ctest: channels timeout=3000
#include <thread>

#include "chan/channels.hpp"

namespace {

using namespace chan_test;

// Count, sum and a sum of mixed values: a lost, doubled or torn value changes at least one.
struct checksum {
  std::uint64_t count = 0, sum = 0, mixed = 0;
  void add(std::uint64_t v) noexcept {
    ++count;
    sum += v;
    mixed += (v ^ v >> 29) * 0xbf58476d1ce4e5b9;
  }
  void add(const checksum& other) noexcept {
    count += other.count;
    sum += other.sum;
    mixed += other.mixed;
  }
  friend bool operator==(const checksum&, const checksum&) = default;
};

std::uint64_t total_items() { return support::soaked(10'000'000, 1'000'000'000); }

struct wide {
  std::uint64_t value, again;
};
std::uint64_t value_of(std::uint64_t v) { return v; }
std::uint64_t value_of(const wide& v) { return v.value == ~v.again ? v.value : 0; }
std::uint64_t value_of(const std::unique_ptr<std::uint64_t>& v) { return *v; }
template <class T>
T made_of(std::uint64_t v) {
  if constexpr (std::is_same_v<T, wide>)
    return {v, ~v};
  else if constexpr (std::is_same_v<T, std::uint64_t>)
    return v;
  else
    return std::make_unique<std::uint64_t>(v);
}

template <class T>
void conserves(std::size_t workers, std::size_t capacity, std::uint64_t items, bool selecting) {
  constexpr std::size_t senders = 4;
  constexpr std::size_t receivers = 3;
  watched_runtime rt(workers);
  auto [out, in] = make<T>(capacity);
  const std::uint64_t each = items / senders + 1;
  std::vector<weft::join_handle<checksum>> sending;
  std::vector<weft::join_handle<checksum>> receiving;
  for (std::size_t s = 0; s < senders; ++s)
    sending.push_back(rt->spawn([&, s, w = out]() mutable {
      checksum mine;
      for (std::uint64_t i = 0; i < each; ++i) {
        const std::uint64_t v = i * senders + s + 1;
        mine.add(v);
        EXPECT_TRUE(selecting && i % 4 == 0 ? weft::alt(w << made_of<T>(v)).ok()
                                            : static_cast<bool>(w.send(made_of<T>(v))));
        // An unlimited channel must not be the whole memory.
        if (capacity == no_limit && i % 1'024 == 0) until([&] { return w.size() < 100'000; });
      }
      return mine;
    }));
  for (std::size_t r = 0; r < receivers; ++r)
    receiving.push_back(rt->spawn([&, from = in]() mutable {
      checksum mine;
      for (std::uint64_t i = 0;; ++i) {
        std::optional<T> v;
        if (selecting && i % 4 == 0)
          (void)weft::alt(from >> v);
        else if (std::optional<T> got = from.recv())
          v.emplace(std::move(*got));
        if (!v) return mine;
        mine.add(value_of(*v));
      }
    }));
  out.reset();
  checksum sent;
  checksum received;
  for (auto& h : sending) sent.add(h.join());
  for (auto& h : receiving) received.add(h.join());
  EXPECT_EQ(sent.count, each * senders);
  EXPECT_EQ(received, sent);
  EXPECT_EQ(in.statistics().sent, sent.count);
  EXPECT_EQ(in.statistics().received, sent.count);
}

// req: LS-C1 LS-C2 CC-7 CC-8 CC-9
TEST(Conservation, ten_million_values_arrive_once_each) {
  const std::uint64_t n = total_items() / 20;
  at_worker_counts([&](std::size_t workers) {
    for (const bool selecting : {false, true}) {
      conserves<std::uint64_t>(workers, 0, n, selecting);
      conserves<std::uint64_t>(workers, 1, n, selecting);
      conserves<std::uint64_t>(workers, 3, n, selecting);
      conserves<std::uint64_t>(workers, 64, 4 * n, selecting);
      conserves<std::uint64_t>(workers, no_limit, n, selecting);
      conserves<wide>(workers, 2, n, selecting);
      conserves<std::unique_ptr<std::uint64_t>>(workers, 8, n, selecting);
    }
  });
}

}  // namespace
