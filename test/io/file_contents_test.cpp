// Whole files: read_file reads anything to its end, write_file replaces all or nothing.
#include <sys/stat.h>

#include <thread>

#include "io/files.hpp"
#include "io/replace_file.hpp"

namespace {

using namespace file_test;
using FileContents = leaves_no_descriptor;

// req: IO-9
TEST_F(FileContents, any_size_is_read_to_its_end) {
  for (const std::size_t size : {0U, 1U, 4095U, 4096U, 4097U, 300'000U, 20'000'000U}) {
    const path p = dir.with("f", letters(size));
    in_thread_and_tasks([&] { EXPECT_EQ(fs::read_file(p), letters(size)); });
  }
}

// req: IO-9
TEST_F(FileContents, a_file_that_does_not_know_its_size_is_read_to_its_end) {
  in_thread_and_tasks([&] {
    EXPECT_NE(fs::read_file("/proc/self/status").find("Threads:"), std::string::npos);
    EXPECT_GT(fs::read_file("/proc/self/smaps").size(), 4096U) << "in several pieces";
    EXPECT_EQ(fs::read_file("/dev/null"), "");
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    ASSERT_EQ(::write(ends[1], "piped", 5), 5);
    ::close(ends[1]);
    EXPECT_EQ(fs::read_file("/dev/fd/" + std::to_string(ends[0])), "piped");
    ::close(ends[0]);
  });
}

// req: IO-13
TEST_F(FileContents, errors_are_told_in_both_forms) {
  in_thread_and_tasks([&] {
    const path missing = dir / "no" / "file";
    EXPECT_EQ(message_of([&] { (void)fs::read_file(missing); }, std::errc::no_such_file_or_directory),
              "weft: open \"" + missing.native() + "\": No such file or directory");
    std::error_code why;
    EXPECT_EQ(fs::read_file(dir.directory(), why), "");
    EXPECT_EQ(why, std::errc::is_a_directory);
    EXPECT_NE(message_of([&] { (void)fs::read_file(dir.directory()); }, std::errc::is_a_directory).find("weft: read "),
              std::string::npos);
    EXPECT_EQ(message_of([&] { fs::write_file(missing, "x"); }, std::errc::no_such_file_or_directory),
              "weft: make a temporary file for \"" + missing.native() + "\": No such file or directory");
    fs::write_file(dir.directory(), "x", {}, why);
    EXPECT_EQ(why, std::errc::is_a_directory);
    fs::write_file(std::string("a\0b", 3), "x", {}, why);
    EXPECT_EQ(why, std::errc::invalid_argument);
    fs::write_file(dir / "f", "x", {.permissions = 010000}, why);
    EXPECT_EQ(why, std::errc::invalid_argument);
    fs::write_file("", "x", {}, why);
    EXPECT_EQ(why, std::errc::no_such_file_or_directory);
    fs::write_file(dir / std::string(300, 'x'), "x", {}, why);
    EXPECT_EQ(why, std::errc::filename_too_long);
    fs::write_file(dir / "f", "x", {.sync = false}, why);
    EXPECT_FALSE(why);
    EXPECT_EQ(fs::read_file(dir / "f", why), "x");
    EXPECT_FALSE(why);
    EXPECT_EQ(dir.entries(), 1U);
    std::filesystem::remove(dir / "f");
  });
}

// req: IO-9
TEST_F(FileContents, a_replaced_file_has_the_new_contents_and_its_old_permissions) {
  in_thread_and_tasks([&] {
    const path p = dir / "f";
    fs::write_file(p, "first", {.permissions = 0640});
    EXPECT_EQ(fs::read_file(p), "first");
    ASSERT_EQ(::chmod(p.c_str(), 0666), 0);
    const file old = file::open(p);
    fs::write_file(p, letters(100), {.permissions = 0600});
    EXPECT_EQ(fs::read_file(p), letters(100));
    EXPECT_EQ(static_cast<unsigned>(file::open(p).stat().permissions), 0666U) << "although the umask would take some";
    EXPECT_EQ(old.size(), 5U) << "who has it open keeps it";
    fs::write_file(p, "");
    EXPECT_EQ(fs::read_file(p), "");
    EXPECT_EQ(dir.entries(), 1U);
    std::filesystem::remove(p);
  });
}

TEST_F(FileContents, a_path_without_a_directory_is_in_the_working_directory) {
  const path before = std::filesystem::current_path();
  std::filesystem::current_path(dir.directory());
  in_thread_and_tasks([&] { fs::write_file("f", "text"); });
  std::filesystem::current_path(before);
  EXPECT_EQ(fs::read_file(dir / "f"), "text");
  EXPECT_EQ(dir.entries(), 1U);
}

TEST_F(FileContents, a_replaced_file_is_the_one_a_link_leads_to) {
  in_thread_and_tasks([&] {
    std::filesystem::create_directory(dir / "there");
    std::filesystem::create_symlink("there/link", dir / "link");
    std::filesystem::create_symlink(dir / "there" / "f", dir / "there" / "link");
    fs::write_file(dir / "link", "made");
    EXPECT_EQ(fs::read_file(dir / "there" / "f"), "made");
    fs::write_file(dir / "link", "replaced");
    EXPECT_EQ(fs::read_file(dir / "there" / "f"), "replaced");
    EXPECT_TRUE(std::filesystem::is_symlink(dir / "link"));
    EXPECT_TRUE(std::filesystem::is_symlink(dir / "there" / "link"));
    std::filesystem::create_symlink("loop", dir / "loop");
    std::error_code why;
    fs::write_file(dir / "loop", "x", {}, why);
    EXPECT_EQ(why, std::errc::too_many_symbolic_link_levels);
    for (const char* name : {"there", "link", "loop"}) std::filesystem::remove_all(dir / name);
  });
}

// req: IO-9
TEST_F(FileContents, a_device_or_pipe_is_written_to_and_not_replaced) {
  in_thread_and_tasks([&] {
    std::error_code why;
    fs::write_file("/dev/full", "x", {}, why);
    EXPECT_EQ(why, std::errc::no_space_on_device);
    fs::write_file("/dev/null", "x");
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    fs::write_file("/dev/fd/" + std::to_string(ends[1]), "piped");
    char room[8];
    EXPECT_EQ(::read(ends[0], room, sizeof room), 5);
    ::close(ends[0]);
    ::close(ends[1]);
  });
}

// Readers see one whole version or another.
// req: IO-9
TEST_F(FileContents, a_replaced_file_is_never_seen_in_part) {
  const path p = dir.with("f", std::string(1000, 'a'));
  at_worker_counts_in_a_task("a file that is replaced while others read it", [&] {
    base::atomic<bool> over{false};
    std::vector<weft::join_handle<void>> readers;
    for (int t = 0; t < 2; ++t)
      readers.push_back(weft::spawn([&] {
        while (!over.load()) {
          const std::string got = fs::read_file(p);
          ASSERT_FALSE(got.empty());
          const auto version = static_cast<std::size_t>(got[0] - 'a');
          ASSERT_EQ(got, std::string(1000 + version * 3000, got[0]));
          weft::yield();
        }
      }));
    for (std::size_t i = 0; i < scaled(200); ++i)
      fs::write_file(p, std::string(1000 + i % 5 * 3000, static_cast<char>('a' + i % 5)), {.sync = false});
    over = true;
    for (auto& r : readers) r.join();
    EXPECT_EQ(dir.entries(), 1U);
  });
}

// ---- every step fails, or is where the task is cancelled --------------------------------------------------------------

// A kernel that does something at one of the calls that write_file makes, counted from 1.
struct {
  int at = 0;
  int made = 0;
  bool fails = false;  // with EIO; otherwise the running task is cancelled, and the call is made
} step;

bool fails_here() noexcept {
  if (++step.made != step.at) return false;
  if (step.fails)
    errno = EIO;
  else
    weft::this_task::ref().cancel();
  return step.fails;
}

const io::kernel_calls& stepping_kernel() {
  static const io::kernel_calls calls = [] {
    io::kernel_calls k = io::real_kernel();
    k.open = [](const char* p, int flags, mode_t m) noexcept { return fails_here() ? -1 : ::open(p, flags, m); };
    k.stat = [](const char* p, struct stat* about) noexcept { return fails_here() ? -1 : ::stat(p, about); };
    k.pwritev2 = [](int fd, const iovec* from, int count, off_t offset, int flags) noexcept -> ssize_t {
      return fails_here() ? -1 : ::pwritev2(fd, from, count, offset, flags);
    };
    k.fchmod = [](int fd, mode_t m) noexcept { return fails_here() ? -1 : ::fchmod(fd, m); };
    k.fsync = [](int fd) noexcept { return fails_here() ? -1 : ::fsync(fd); };
    k.rename = [](const char* from, const char* to) noexcept { return fails_here() ? -1 : ::rename(from, to); };
    return k;
  }();
  return calls;
}

// stat, open the directory, open the temporary file, two writes, fchmod, fsync, rename, fsync of the directory.
constexpr int steps = 9;
std::string new_contents() { return letters(io::bytes_per_turn + 1); }

io::file_failure replace(const path& p) {
  return io::replace_file(stepping_kernel(), p, new_contents(), {}, std::source_location::current());
}

// req: IO-9
TEST_F(FileContents, a_failed_replacement_has_changed_nothing_and_left_nothing) {
  in_thread_and_tasks([&] {
    const std::size_t before = support::open_descriptors();
    for (int at = 1; at <= steps + 1; ++at) {
      const path p = dir.with("f", "old");
      step = {.at = at, .made = 0, .fails = true};
      const io::file_failure how = replace(p);
      EXPECT_EQ(static_cast<bool>(how), at <= steps) << at;
      if (how) {
        EXPECT_EQ(how.why, std::errc::io_error);
      }
      EXPECT_EQ(support::file_text(p) == "old", at < steps) << at << " " << how.operation;
      EXPECT_EQ(dir.entries(), 1U) << at << " " << how.operation;
      EXPECT_EQ(support::open_descriptors(), before) << at;
    }
    EXPECT_EQ(step.made, steps) << "the last round was without a failure";
    EXPECT_EQ(support::file_text(dir / "f"), new_contents());
  });
}

// req: IO-9
TEST_F(FileContents, a_cancelled_replacement_has_changed_nothing_and_left_nothing) {
  at_worker_counts_in_a_task([&] {
    const std::size_t before = support::open_descriptors();
    for (int at = 1; at <= steps; ++at) {
      const path p = dir.with("f", "old");
      step = {.at = at, .made = 0, .fails = false};
      bool done = false;
      auto t = weft::spawn([&] {
        EXPECT_FALSE(replace(p));
        done = true;
      });
      try {
        t.join();
      } catch (const weft::task_cancelled&) {
        EXPECT_FALSE(done);
      }
      EXPECT_EQ(done, at >= steps - 1) << at << ": the rename has begun, and is finished";
      EXPECT_EQ(support::file_text(p) == "old", !done) << at;
      EXPECT_EQ(dir.entries(), 1U) << at;
      EXPECT_EQ(support::open_descriptors(), before) << at;
    }
  });
}

TEST_F(FileContents, a_name_that_is_taken_is_passed_over) {
  static int taken;
  static io::kernel_calls crowded = io::real_kernel();
  crowded.open = [](const char* p, int flags, mode_t m) noexcept {
    if ((flags & O_EXCL) != 0 && taken > 0) {
      --taken;
      errno = EEXIST;
      return -1;
    }
    return ::open(p, flags, m);
  };
  const auto here = std::source_location::current();
  taken = 5;
  EXPECT_FALSE(io::replace_file(crowded, dir / "f", "x", {}, here));
  EXPECT_EQ(taken, 0);
  taken = 1'000'000;
  EXPECT_EQ(io::replace_file(crowded, dir / "f", "y", {}, here).why, std::errc::file_exists) << "it gives up";
  EXPECT_EQ(fs::read_file(dir / "f"), "x");
}

TEST_F(FileContents, a_file_system_that_cannot_sync_directories_will_do) {
  static io::kernel_calls simple = io::real_kernel();
  simple.fsync = [](int fd) noexcept {
    struct stat about{};
    ::fstat(fd, &about);
    if (!S_ISDIR(about.st_mode)) return ::fsync(fd);
    errno = EINVAL;
    return -1;
  };
  EXPECT_FALSE(io::replace_file(simple, dir / "f", "x", {}, std::source_location::current()));
  EXPECT_EQ(fs::read_file(dir / "f"), "x");
}

}  // namespace
