// Buffered reading and writing: whatever the pieces in which bytes come, the lines and records are the same.
// ctest: uring
#include <weft/text.hpp>

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <ranges>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "io/files.hpp"
#include "io/net.hpp"
#include <weft/net/unix.hpp>

namespace {

using namespace support::usual;
using namespace support;

using strings = std::vector<std::string>;

// A stream that gives these pieces, one for each read if there is room for it; an error instead of a piece is told once.
class pieces {
 public:
  struct step {
    std::string bytes;
    std::error_code why = {};
  };
  explicit pieces(std::deque<step> all) : left_(std::move(all)) {}
  // A piece ends at each of these places.
  pieces(std::string_view all, const std::vector<std::size_t>& cuts) {
    std::size_t at = 0;
    for (const std::size_t cut : cuts) {
      if (cut > at) left_.push_back({std::string(all.substr(at, cut - at))});
      at = std::max(at, cut);
    }
    if (at < all.size()) left_.push_back({std::string(all.substr(at))});
  }

  std::size_t read_some(weft::mutable_buffer to, std::error_code& why, std::source_location /*where*/) {
    why.clear();
    ++reads;
    if (left_.empty()) return 0;
    step& s = left_.front();
    if (s.why) {
      why = s.why;
      left_.pop_front();
      return 0;
    }
    const std::size_t n = std::min(to.size(), s.bytes.size());
    std::copy_n(s.bytes.data(), n, reinterpret_cast<char*>(to.data()));
    s.bytes.erase(0, n);
    if (s.bytes.empty()) left_.pop_front();
    return n;
  }
  [[nodiscard]] static std::string_view name() { return "some pieces"; }

  int reads = 0;

 private:
  std::deque<step> left_;
};

// Takes up to `most` bytes at a time, and tells an error at the calls that are listed.
struct collector {
  std::string all = {};
  std::size_t most = 1000;
  std::vector<int> fails_at = {};
  int calls = 0;
  std::size_t write_some(weft::const_buffer from, std::error_code& why, std::source_location /*where*/) {
    why.clear();
    if (std::ranges::find(fails_at, ++calls) != fails_at.end()) {
      why = std::make_error_code(std::errc::timed_out);
      return 0;
    }
    const std::size_t n = std::min(most, from.size());
    all.append(reinterpret_cast<const char*>(from.data()), n);
    return n;
  }
};

// A TCP stream that tells other tasks how many bytes have gone through it.
struct counted {
  const net::tcp_stream& stream;
  base::atomic<std::size_t> bytes{0};
  std::size_t read_some(weft::mutable_buffer to, std::error_code& why, std::source_location where) {
    return count(stream.read_some(to, why, where));
  }
  std::size_t write_some(weft::const_buffer from, std::error_code& why, std::source_location where) {
    return count(stream.write_some(from, why, where));
  }
  std::size_t count(std::size_t n) {
    bytes.fetch_add(n, base::relaxed);
    return n;
  }
};

[[nodiscard]] strings lines_of(auto&& stream, const weft::reading_options& o = {}) {
  strings all;
  for (const std::string_view line : weft::lines(stream, o)) all.emplace_back(line);
  return all;
}

// What std::string says.
[[nodiscard]] strings expected_lines(std::string_view text) {
  strings all;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (end != std::string_view::npos && line.ends_with('\r')) line.remove_suffix(1);
    all.emplace_back(line);
  }
  return all;
}

[[nodiscard]] std::string message_of(auto&& f) {
  try {
    f();
  } catch (const std::system_error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

const std::error_code broken = std::make_error_code(std::errc::connection_reset);

// ---- lines, whatever the pieces -------------------------------------------------------------------------------------

TEST(Lines, an_end_cut_at_any_byte_is_an_end) {
  using namespace std::string_literals;
  const std::string text = "one\r\n\r\n\n\rtwo\r\r\nthree\0four\n\0\nlast"s;
  const strings expected{"one", "", "", "\rtwo\r", "three\0four"s, "\0"s, "last"};
  ASSERT_EQ(expected_lines(text), expected);
  for (std::size_t i = 0; i <= text.size(); ++i)
    for (std::size_t k = i; k <= text.size(); ++k)
      for (const std::size_t buffer : {1, 2, 7, 100})
        ASSERT_EQ(lines_of(pieces(text, {i, k}), {.buffer = buffer}), expected) << i << " " << k << " " << buffer;
}

TEST(Lines, random_text_in_random_pieces_gives_the_same_lines) {
  std::minstd_rand random(4711);
  const auto below = [&](std::size_t n) { return random() % n; };
  for (int round = 0; round < 2000; ++round) {
    std::string text(below(300), 'x');
    for (char& c : text) c = "ab\r\n\n\0"[below(6)];
    std::vector<std::size_t> cuts(below(40));
    for (std::size_t& c : cuts) c = below(text.size() + 1);
    std::ranges::sort(cuts);
    const std::size_t buffer = 1 + below(50);
    ASSERT_EQ(lines_of(pieces(text, cuts), {.buffer = buffer}), expected_lines(text)) << "round " << round;
  }
}

// The limit does not depend on how the line comes in.
TEST(Lines, a_line_of_the_longest_length_passes_and_one_more_byte_does_not) {
  for (const std::string_view end : {"\n", "\r\n", ""})
    for (const std::size_t buffer : {1, 4, 5, 6, 7, 100})
      for (std::size_t cut = 0; cut < 9; ++cut) {
        const auto read = [&](std::string_view line) {
          std::error_code why;
          const std::string all = std::string(line) + std::string(end) + (end.empty() ? "" : "next");
          weft::buffered_reader in(pieces(all, {std::min(cut, all.size())}), {.longest = 5, .buffer = buffer});
          const auto got = in.read_line(why);
          EXPECT_EQ(why == std::errc::message_size, !got.has_value());
          return got ? std::string(*got) : "too long";
        };
        ASSERT_EQ(read("abcde"), "abcde") << cut;
        ASSERT_EQ(read("abcdef"), "too long") << cut;
        ASSERT_EQ(read("abcd\r"), end.empty() || end == "\r\n" ? "abcd\r" : "abcd") << cut;
      }
}

TEST(Lines, a_line_that_is_too_long_takes_no_more_memory_and_names_the_limit) {
  pieces endless({{std::string(1 << 20, 'x')}});
  weft::buffered_reader in(endless, {.longest = 1000, .buffer = 16});
  EXPECT_EQ(message_of([&] { (void)in.read_line(); }),
            "read a line from some pieces (the limit is 1000 bytes): Message too long");
  const std::size_t held = in.buffered().size();
  EXPECT_LE(held, 1002u);
  const int reads = endless.reads;
  std::error_code why;
  EXPECT_FALSE(in.read_line(why));
  EXPECT_EQ(why, std::errc::message_size) << "it stays too long until somebody takes it away";
  EXPECT_EQ(endless.reads, reads);
  EXPECT_EQ(in.take_buffered(), std::string(held, 'x'));
  EXPECT_EQ(in.buffered(), "");
}

TEST(Lines, a_long_line_makes_the_buffer_larger) {
  const std::string text = pattern(50'000);
  EXPECT_EQ(lines_of(pieces(text + "\nshort\n", {}), {.buffer = 16}), (strings{text, "short"}));
}

TEST(Lines, nothing_has_no_lines_and_an_end_has_one) {
  EXPECT_EQ(lines_of(pieces("", {})), strings());
  EXPECT_EQ(lines_of(pieces("\n", {})), strings{""});
}

TEST(Lines, many_lines_of_one_piece_are_one_read) {
  pieces stream("a\nb\nc\n", {});
  EXPECT_EQ(lines_of(stream), (strings{"a", "b", "c"}));
  EXPECT_EQ(stream.reads, 2) << "one for the lines, one for the end";
}

// ---- errors in the middle -------------------------------------------------------------------------------------------

// req: IO-13
TEST(Lines, what_was_complete_comes_before_the_error_and_the_rest_after_it) {
  pieces stream({{"one\ntwo\nthr"}, {"", broken}, {"ee\n"}});
  weft::buffered_reader in(stream);
  EXPECT_EQ(in.read_line(), "one");
  EXPECT_EQ(in.read_line(), "two");
  EXPECT_EQ(message_of([&] { (void)in.read_line(); }), "read a line from some pieces: Connection reset by peer");
  EXPECT_EQ(in.buffered(), "thr");
  EXPECT_EQ(in.read_line(), "three");
  std::error_code why = broken;
  EXPECT_FALSE(in.read_line(why));
  EXPECT_FALSE(why) << "the end is no error";
}

TEST(Lines, a_range_throws_the_error_behind_the_lines_before_it) {
  strings seen;
  EXPECT_EQ(error_of([&] {
              for (const std::string_view line : weft::lines(pieces({{"one\ntw"}, {"", broken}})))
                seen.emplace_back(line);
            }),
            broken);
  EXPECT_EQ(seen, strings{"one"});
}

// ---- other records --------------------------------------------------------------------------------------------------

TEST(Records, a_delimiter_cut_at_any_byte_is_a_delimiter) {
  const std::string text = "head\r\n\r\n\r\n\r\r\n\r\nx\r\n\r\n";
  for (std::size_t i = 0; i <= text.size(); ++i)
    for (std::size_t k = i; k <= text.size(); ++k)
      for (const std::size_t buffer : {1, 3, 100}) {
        weft::buffered_reader in(pieces(text, {i, k}), {.buffer = buffer});
        ASSERT_EQ(in.read_until("\r\n\r\n"), "head");
        ASSERT_EQ(in.read_until("\r\n\r\n"), "\r\n\r");
        ASSERT_EQ(in.read_until("\r\n\r\n"), "x");
        ASSERT_EQ(in.read_until("\r\n\r\n"), std::nullopt);
      }
}

TEST(Records, the_limit_does_not_count_the_delimiter) {
  for (std::size_t cut = 0; cut < 9; ++cut) {
    weft::buffered_reader in(pieces("abcde--abcdef--", {cut}), {.longest = 5, .buffer = 3});
    std::error_code why;
    ASSERT_EQ(in.read_until("--", why), "abcde");
    ASSERT_FALSE(in.read_until("--", why));
    ASSERT_EQ(why, std::errc::message_size);
  }
}

// req: IO-13
TEST(Records, a_stream_that_ends_within_a_record_is_told_and_the_bytes_are_kept) {
  weft::buffered_reader in(pieces("one;tw", {}));
  EXPECT_EQ(in.read_until(";"), "one");
  std::error_code why;
  EXPECT_FALSE(in.read_until(";", why));
  EXPECT_EQ(why, weft::io_errc::stream_ended);
  EXPECT_EQ(in.take_buffered(), "tw");
  EXPECT_FALSE(in.read_until(";", why));
  EXPECT_FALSE(why);
  EXPECT_THROW((void)in.read_until(""), weft::usage_error);
}

TEST(Records, exact_counts_lines_and_looks_ahead_mix) {
  const std::string text = "$5\r\nhe\nlo\r\n*rest of it";
  for (std::size_t cut = 0; cut <= text.size(); ++cut)
    for (const std::size_t buffer : {1, 4, 100}) {
      weft::buffered_reader in(pieces(text, {cut}), {.buffer = buffer});
      ASSERT_EQ(in.peek(1), "$");
      ASSERT_EQ(in.read_line(), "$5");
      ASSERT_EQ(in.read_exactly(5), "he\nlo");
      ASSERT_EQ(in.read_line(), "");
      ASSERT_EQ(in.peek(2), "*r");
      in.consume(1);
      char four[4];
      in.read_exactly(four);
      ASSERT_EQ(std::string(four, 4), "rest");
      ASSERT_EQ(in.peek(100), " of it") << "fewer at the end";
      std::error_code why;
      ASSERT_EQ(in.read_exactly(100, why), "");
      ASSERT_EQ(why, weft::io_errc::stream_ended);
      ASSERT_EQ(in.read_exactly(6), " of it") << "it was kept";
      ASSERT_EQ(in.read_exactly(0), "");
      ASSERT_THROW(in.consume(1), weft::usage_error);
    }
}

TEST(Records, more_than_the_longest_is_no_exact_count) {
  weft::buffered_reader in(pieces("0123456789", {}), {.longest = 4, .buffer = 2});
  std::error_code why;
  EXPECT_EQ(in.read_exactly(5, why), "");
  EXPECT_EQ(why, std::errc::message_size);
  EXPECT_EQ(in.peek(5, why), "");
  EXPECT_EQ(why, std::errc::message_size);
  EXPECT_EQ(in.read_exactly(4), "0123");
  char all[6];
  in.read_exactly(all);
  EXPECT_EQ(std::string(all, 6), "456789") << "memory of the caller's is not limited";
}

TEST(Records, reading_some_gives_the_buffered_bytes_first) {
  pieces stream(std::string("line\nbody ") + std::string(100, 'x'), {10});
  weft::buffered_reader in(stream, {.buffer = 16});
  EXPECT_EQ(in.read_line(), "line");
  char room[64];
  EXPECT_EQ(in.read_some(room), 5u);
  EXPECT_EQ(std::string(room, 5), "body ");
  EXPECT_EQ(in.read_some(weft::mutable_buffer(nullptr, 0)), 0u);
  EXPECT_EQ(in.read_some(room), 64u) << "large pieces go around the buffer";
  EXPECT_EQ(in.buffered(), "");
  EXPECT_EQ(in.read_some({room, 3}), 3u);
  EXPECT_EQ(in.buffered().size(), 13u) << "small ones do not";
}

// ---- owning, borrowing, moving --------------------------------------------------------------------------------------

TEST(Readers, own_or_borrow_and_keep_their_bytes_when_they_move) {
  pieces stream("a\nb\nc\nd", {});
  weft::buffered_reader borrowing(stream);
  static_assert(std::same_as<decltype(borrowing), weft::buffered_reader<pieces&>>);
  EXPECT_EQ(borrowing.read_line(), "a");
  weft::buffered_reader moved(std::move(borrowing));
  static_assert(std::same_as<decltype(moved), weft::buffered_reader<pieces&>>);
  EXPECT_EQ(moved.read_line(), "b");
  EXPECT_EQ(&moved.stream(), &stream);
  weft::buffered_reader owning(pieces("e\nf", {}));
  static_assert(std::same_as<decltype(owning), weft::buffered_reader<pieces>>);
  EXPECT_EQ(owning.read_line(), "e");
  owning = weft::buffered_reader(pieces("g", {}));
  EXPECT_EQ(owning.read_line(), "g");
  strings rest;
  for (const std::string_view line : weft::lines(moved)) rest.emplace_back(line);
  EXPECT_EQ(rest, (strings{"c", "d"})) << "the lines of a reader begin with what it holds";
}

TEST(Readers, give_lines_to_views) {
  static_assert(std::ranges::input_range<decltype(weft::lines(std::declval<pieces&>()))>);
  std::size_t sum = 0;
  for (const std::size_t n : weft::lines(pieces("a\n\nccc\n", {})) | std::views::filter([](std::string_view l) {
                               return !l.empty();
                             }) | std::views::transform([](std::string_view l) { return l.size(); }))
    sum += n;
  EXPECT_EQ(sum, 4u);
}

// ---- sockets and files ----------------------------------------------------------------------------------------------

TEST(Readers, hundred_thousand_lines_go_through_tcp) {
  with_sockets([] {
    constexpr int count = 25'000;  // at four worker counts
    auto [client, server] = connected_pair();
    auto [from, to] = std::move(client).split();
    auto writer = weft::spawn([t = std::move(to)] {
      weft::buffered_writer out(t);
      for (int i = 0; i < count; ++i) {
        out.write(std::to_string(i));
        out.write(std::string_view(i % 2 == 0 ? "\n" : "\r\n"));
      }
      out.flush();
    });
    int expected = 0;
    for (const std::string_view line : weft::lines(server)) {
      if (line != std::to_string(expected)) ADD_FAILURE() << line << " instead of " << expected;
      ++expected;
    }
    EXPECT_EQ(expected, count);
    writer.join();
  });
}

// req: IO-2
TEST(Readers, a_cancelled_read_of_a_line_loses_nothing) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    counted stream{server};
    weft::buffered_reader in(stream);
    for (std::size_t round = 0; round < 20; ++round) {
      auto reader = weft::spawn([&] { (void)in.read_line(); });
      client.write_all("first ha");
      until([&] { return stream.bytes.load(base::relaxed) == round * 11 + 8; });  // it waits for the rest, or soon does
      reader.cancel();
      EXPECT_THROW(reader.join(), weft::task_cancelled);
      client.write_all("lf\n");
      EXPECT_EQ(in.read_line(), "first half");
    }
  });
}

// req: IO-2
TEST(Readers, a_cancelled_task_gets_no_line_though_one_is_buffered) {
  with_sockets([] {
    weft::buffered_reader in(pieces("one\ntwo\n", {}));
    EXPECT_EQ(in.read_line(), "one");
    auto reader = weft::spawn([&] {
      while (!weft::this_task::is_cancelled()) weft::yield();
      std::error_code why;
      (void)in.read_line(why);
    });
    reader.cancel();
    EXPECT_THROW(reader.join(), weft::task_cancelled);
    EXPECT_EQ(in.read_line(), "two");
  });
}

// req: IO-2 IO-13
TEST(Readers, a_time_limit_in_the_middle_of_a_line_loses_nothing) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    weft::buffered_reader in(server);
    client.write_all("abc");
    std::error_code why;
    EXPECT_EQ(in.peek(3), "abc");
    EXPECT_FALSE(in.read_line_for(1ms, why));
    EXPECT_EQ(why, std::errc::timed_out);
    EXPECT_EQ(error_of([&] { (void)in.read_line_for(1ms); }), std::errc::timed_out);
    EXPECT_EQ(error_of([&] { (void)in.read_until_for(1ms, ";"); }), std::errc::timed_out);
    EXPECT_EQ(in.read_exactly_for(1ms, 4, why), "");
    EXPECT_EQ(why, std::errc::timed_out);
    server.expires_after(1ms);
    EXPECT_EQ(message_of([&] { (void)in.read_line(); }),
              "read a line from " + client.local_endpoint().to_string() + ": Connection timed out");
    server.expires_never();
    client.write_all("def\n");
    EXPECT_EQ(in.read_line_for(1h), "abcdef");
  });
}

// A limit of each wait alone would begin again with every byte.
TEST(Readers, the_limit_of_an_operation_holds_though_bytes_come_all_the_time) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    auto dripping = weft::spawn([&] {
      for (;;) {
        client.write_all("x");
        weft::sleep_for(100us);
      }
    });
    weft::buffered_reader in(server, {.longest = std::size_t{1} << 40});
    std::error_code why;
    EXPECT_FALSE(in.read_line_for(20ms, why));
    EXPECT_EQ(why, std::errc::timed_out);
    dripping.cancel();
    EXPECT_THROW(dripping.join(), weft::task_cancelled);
  });
}

TEST(Readers, a_reset_in_the_middle_comes_after_the_lines_before_it) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    client.write_all("one\ntwo\nth");
    weft::buffered_reader in(server);
    EXPECT_EQ(in.peek(10), "one\ntwo\nth");
    const linger at_once{1, 0};
    ASSERT_EQ(::setsockopt(client.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    client.close();
    EXPECT_EQ(in.read_line(), "one");
    EXPECT_EQ(in.read_line(), "two");
    std::error_code why;
    EXPECT_FALSE(in.read_line(why));
    EXPECT_EQ(why, std::errc::connection_reset);
    EXPECT_EQ(in.take_buffered(), "th");
  });
}

TEST(Readers, halves_unix_streams_and_outside_threads_have_lines) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    auto [from, to] = std::move(server).split();
    client.write_all("to the half\n");
    client.shutdown(net::half::write);
    EXPECT_EQ(lines_of(std::as_const(from)), strings{"to the half"});
    auto [one, other] = net::unix_stream::pair();
    one.write_all("a\nb");
    one.close();
    EXPECT_EQ(lines_of(other), (strings{"a", "b"}));
  });
  auto [client, server] = connected_pair();
  std::thread writer([&client_end = client] {
    weft::buffered_writer out(client_end);
    out.write("from a thread\n");
    out.flush();
    client_end.shutdown(net::half::write);
  });
  EXPECT_EQ(lines_of(server), strings{"from a thread"});
  writer.join();
}

class TextFiles : public file_test::leaves_no_descriptor {};

TEST_F(TextFiles, files_have_lines_and_are_written_in_pieces) {
  file_test::in_thread_and_tasks([&] {
    auto f = weft::fs::file::open(dir / "text", {.write = true, .create = true});
    strings all;
    {
      weft::buffered_writer out(weft::fs::writer(f), {.buffer = 100});
      for (std::size_t i = 0; i < 1000; ++i) {
        all.push_back(file_test::letters(i % 150));
        out.write(all.back());
        out.write("\n");
      }
      out.flush();
    }
    f = weft::fs::file::open(dir / "text");
    EXPECT_EQ(lines_of(weft::fs::reader(f), {.buffer = 64}), all);
    EXPECT_EQ(message_of([&] { (void)lines_of(weft::fs::reader(f), {.longest = 10}); }),
              "read a line from " + (dir / "text").string() + " (the limit is 10 bytes): Message too long");
    f.close();
    std::filesystem::remove(dir / "text");
  });
}

// ---- writing --------------------------------------------------------------------------------------------------------

TEST(Writers, collect_small_pieces_and_write_large_ones_as_they_are) {
  collector c;
  weft::buffered_writer out(c, {.buffer = 10});
  out.write("abc");
  out.write("");
  out.write("defghij");
  EXPECT_EQ(c.calls, 0);
  EXPECT_EQ(out.buffered(), "abcdefghij");
  out.write("k");
  EXPECT_EQ(c.all, "abcdefghij");
  out.write(std::string(25, 'z'));
  EXPECT_EQ(c.calls, 3) << "what was buffered, and the large piece";
  out.flush();
  out.flush();
  EXPECT_EQ(c.all, "abcdefghijk" + std::string(25, 'z'));
  EXPECT_EQ(c.calls, 3) << "a flush of nothing writes nothing";
}

// req: IO-13
TEST(Writers, go_on_with_the_first_byte_that_was_not_taken) {
  std::minstd_rand random(99);
  for (int round = 0; round < 500; ++round) {
    collector c{.most = 1 + random() % 7};
    for (int i = 1; i < 100; ++i)
      if (random() % 3 == 0) c.fails_at.push_back(i);
    weft::buffered_writer out(c, {.buffer = 1 + random() % 12});
    std::string expected;
    for (int i = 0; i < 10; ++i) {
      const std::string piece = pattern(random() % 20);
      expected += piece;
      for (std::string_view rest = piece;;) {
        std::error_code why;
        rest.remove_prefix(out.write(rest, why));
        if (!why) break;
      }
    }
    for (std::error_code why = broken; why;) out.flush(why);
    ASSERT_EQ(c.all, expected) << "round " << round;
  }
}

TEST(Writers, take_a_piece_whole_or_not_at_all_if_it_throws) {
  collector c{.fails_at = {1}};
  weft::buffered_writer out(c, {.buffer = 10});
  out.write("12345678");
  EXPECT_EQ(message_of([&] { out.write("abcd"); }), "write: Connection timed out");
  EXPECT_EQ(out.buffered(), "12345678");
  out.write("abcd");
  out.flush();
  EXPECT_EQ(c.all, "12345678abcd");
}

TEST(Writers, drop_what_was_not_flushed) {
  collector c;
  {
    weft::buffered_writer out(c);
    out.write("kept");
    out.flush();
    out.write("dropped");
    weft::buffered_writer moved(std::move(out));
    EXPECT_EQ(moved.buffered(), "dropped");
  }
  EXPECT_EQ(c.all, "kept");
}

// req: IO-2
TEST(Writers, a_cancelled_flush_can_be_repeated) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    const std::string all = pattern(8 << 20);  // more than the kernel takes
    counted stream{client};
    weft::buffered_writer out(stream, {.buffer = all.size()});
    out.write(all);
    auto flusher = weft::spawn([&] { out.flush(); });
    until([&] { return stream.bytes.load(base::relaxed) != 0; });
    flusher.cancel();
    EXPECT_THROW(flusher.join(), weft::task_cancelled);
    auto again = weft::spawn([&] {
      out.flush();
      client.shutdown(net::half::write);
    });
    EXPECT_EQ(read_to_end(server), all);
    again.join();
  });
}

TEST(Writers, tell_operation_address_and_reason) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    weft::buffered_writer out(client);
    out.write("x");
    client.close();
    EXPECT_EQ(message_of([&] { out.flush(); }), "write to a closed descriptor: Operation canceled");
    EXPECT_EQ(out.buffered(), "x");
    out.discard_buffered();
    out.flush();
  });
}

}  // namespace
