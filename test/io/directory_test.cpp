// Directories: listing one, and walking through a tree.
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "io/files.hpp"

namespace {

using namespace file_test;
using std::filesystem::file_type;

class Directory : public leaves_no_descriptor {
 protected:
  // d/, d/e/, d/e/deep, d/link -> e, d/x, top
  void make_tree() const {
    std::filesystem::create_directories(dir / "d" / "e");
    std::filesystem::create_symlink("e", dir / "d" / "link");
    dir.with("top", "");
    dir.with("d/x", "");
    dir.with("d/e/deep", "");
  }
  [[nodiscard]] std::string relative(const fs::entry& e) const {
    return e.path.lexically_relative(dir.directory()).native();
  }
};

// req: IO-9
TEST_F(Directory, is_listed_with_types) {
  make_tree();
  ASSERT_EQ(::mkfifo((dir / "d" / "pipe").c_str(), 0600), 0);
  in_thread_and_tasks([&] {
    std::vector<fs::entry> all = fs::list(dir / "d");
    std::ranges::sort(all, {}, &fs::entry::path);
    ASSERT_EQ(all.size(), 4U);
    EXPECT_EQ(all[0].path, dir / "d" / "e");
    EXPECT_EQ(all[0].type, file_type::directory);
    EXPECT_EQ(all[1].type, file_type::symlink) << "not what it leads to";
    EXPECT_EQ(all[2].type, file_type::fifo);
    EXPECT_EQ(all[3].type, file_type::regular);
    for (const fs::entry& e : all) EXPECT_EQ(e.depth, 0U);
    std::filesystem::create_directory(dir / "empty");
    EXPECT_TRUE(fs::list(dir / "empty").empty());
    std::filesystem::remove(dir / "empty");
  });
}

// req: IO-9
TEST_F(Directory, is_walked_through_to_its_depths) {
  make_tree();
  in_thread_and_tasks([&] {
    std::set<std::string> seen;
    for (const fs::entry& e : fs::walk(dir.directory())) {
      const std::string name = relative(e);
      EXPECT_TRUE(seen.insert(name).second) << name << " twice";
      EXPECT_EQ(e.depth, static_cast<std::size_t>(std::ranges::count(name, '/')));
      const std::string above = path(name).parent_path();
      EXPECT_TRUE(above.empty() || seen.contains(above)) << name << " before its directory";
    }
    EXPECT_EQ(seen, (std::set<std::string>{"d", "d/e", "d/e/deep", "d/link", "d/x", "top"}));
  });
}

TEST_F(Directory, a_part_of_a_walk_can_be_skipped) {
  make_tree();
  in_thread_and_tasks([&] {
    std::set<std::string> seen;
    fs::walker w = fs::walk(dir.directory());
    for (const fs::entry& e : w) {
      seen.insert(relative(e));
      if (e.path.filename() == "e" || e.type != file_type::directory) w.skip();
    }
    EXPECT_EQ(seen, (std::set<std::string>{"d", "d/e", "d/link", "d/x", "top"}));
    EXPECT_FALSE(w.next().has_value()) << "at the end it stays there";
  });
}

// req: IO-13
TEST_F(Directory, errors_are_told_in_both_forms) {
  make_tree();
  in_thread_and_tasks([&] {
    std::error_code why;
    EXPECT_TRUE(fs::list(dir / "top", why).empty());
    EXPECT_EQ(why, std::errc::not_a_directory);
    EXPECT_EQ(message_of([&] { (void)fs::list(dir / "none"); }, std::errc::no_such_file_or_directory),
              "weft: list \"" + (dir / "none").native() + "\": No such file or directory");
    (void)message_of([&] { (void)fs::walk(dir / "none"); }, std::errc::no_such_file_or_directory);
    fs::walker none = fs::walk(dir / "none", why);
    EXPECT_EQ(why, std::errc::no_such_file_or_directory);
    EXPECT_FALSE(none.next(why).has_value());
    EXPECT_FALSE(why);
    EXPECT_EQ(fs::list(dir / "d", why).size(), 3U);
    EXPECT_FALSE(why);
    fs::walker gone = std::move(none);
    EXPECT_THROW((void)none.next(), weft::usage_error);
    none.skip();
  });
}

// Paths that become longer than the kernel takes: the directory at the end can be seen but not entered.
// req: IO-9
TEST_F(Directory, an_error_concerns_one_directory_and_the_walk_goes_on) {
  const std::string name(250, 'n');
  constexpr std::size_t levels = 20;
  int at = ::open(dir.directory().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (std::size_t i = 0; i < levels; ++i) {
    ASSERT_EQ(::mkdirat(at, name.c_str(), 0700), 0);
    ASSERT_EQ(::mkdirat(at, "other", 0700), 0);
    const int below = ::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::close(std::exchange(at, below));
  }
  ::close(at);
  in_thread_and_tasks([&] {
    std::size_t found = 0, failed = 0, others = 0;
    fs::walker w = fs::walk(dir.directory());
    for (;;) {
      std::error_code why;
      const auto e = w.next(why);
      if (why) {
        EXPECT_EQ(why, std::errc::filename_too_long);
        ++failed;
        continue;
      }
      if (!e) break;
      ++found;
      others += e->path.filename() == "other" ? 1 : 0;
    }
    EXPECT_EQ(failed, 1U);
    EXPECT_EQ(found, 2 * others);
    EXPECT_GT(others, 10U);
    fs::walker throwing = fs::walk(dir.directory());
    const std::string message = message_of(
        [&] {
          while (throwing.next().has_value()) {}
        },
        std::errc::filename_too_long);
    EXPECT_NE(message.find("nnn\": File name too long"), std::string::npos) << message.size();
  });
}

TEST_F(Directory, one_that_vanishes_before_it_is_entered_counts_as_empty) {
  in_thread_and_tasks([&] {
    make_tree();
    std::set<std::string> seen;
    for (const fs::entry& e : fs::walk(dir.directory())) {
      seen.insert(relative(e));
      if (e.path.filename() == "d") std::filesystem::remove_all(e.path);
    }
    EXPECT_EQ(seen, (std::set<std::string>{"d", "top"}));
  });
}

// req: IO-9
TEST_F(Directory, many_entries_take_few_turns) {
  constexpr std::size_t count = 2000;
  for (std::size_t i = 0; i < count; ++i) dir.with("file" + std::to_string(i), "");
  at_worker_counts([&](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([&] {
      const std::uint64_t before = hand_overs(rt);
      EXPECT_EQ(fs::list(dir.directory()).size(), count);
      EXPECT_LT(hand_overs(rt) - before, 20U);
    });
  });
}

// req: IO-9
TEST_F(Directory, a_walk_that_is_cancelled_leaves_nothing_open) {
  for (int i = 0; i < 600; ++i) dir.with("file" + std::to_string(i), "");
  at_worker_counts_in_a_task([&] {
    const std::size_t before = support::open_descriptors();
    std::size_t seen = 0;
    auto t = weft::spawn([&] {
      for ([[maybe_unused]] const fs::entry& e : fs::walk(dir.directory()))
        if (++seen == 100) weft::this_task::ref().cancel();
    });
    EXPECT_THROW(t.join(), weft::task_cancelled);
    EXPECT_EQ(seen, 100U);
    EXPECT_EQ(support::open_descriptors(), before);
  });
}

TEST_F(Directory, a_walk_is_a_range) {
  static_assert(std::ranges::input_range<fs::walker>);
  static_assert(std::movable<fs::walker>);
  static_assert(!std::copyable<fs::walker>);
  static_assert(std::movable<file> && !std::copyable<file>);
}

}  // namespace
