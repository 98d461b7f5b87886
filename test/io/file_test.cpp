// Open files: what each operation does, and what it says when it cannot.
#include <functional>
#include <span>

#include "io/files.hpp"

namespace {

using namespace file_test;
using File = leaves_no_descriptor;

// req: IO-9
TEST_F(File, is_written_and_read_at_offsets) {
  in_thread_and_tasks([&] {
    file f = file::open(dir / "f", {.write = true, .create = true, .truncate = true});
    f.write_all_at("hello", 3);
    EXPECT_EQ(f.write_some_at(std::string("abc"), 0), 3U);
    char room[16] = {};
    EXPECT_EQ(f.read_at(room, 0), 8U) << "the file ends before the room is full";
    EXPECT_EQ(std::string_view(room, 8), "abchello");
    EXPECT_EQ(f.read_some_at(mutable_buffer(room, 3), 5), 3U);
    EXPECT_EQ(std::string_view(room, 3), "llo");
    EXPECT_EQ(f.read_at(room, 8), 0U);
    EXPECT_EQ(f.read_some_at(room, 1'000'000), 0U);
    EXPECT_EQ(f.size(), 8U);
    f.close();
  });
}

// req: IO-9
TEST_F(File, several_buffers_are_one_after_the_other) {
  in_thread_and_tasks([&] {
    file f = file::open(dir / "f", {.write = true, .create = true, .truncate = true});
    const std::string a = "one", b = "", c = "two";
    const const_buffer from[] = {a, b, c};
    f.write_all_at(from, 1);
    EXPECT_EQ(f.write_some_at(std::span(from).first(1), 0), 3U);
    std::vector<std::byte> x(2);
    char y[3] = {};
    const mutable_buffer to[] = {x, y};
    EXPECT_EQ(f.read_at(to, 0), 5U);
    EXPECT_EQ(static_cast<char>(x[1]), 'n');
    EXPECT_EQ(std::string_view(y, 3), "eet");
    EXPECT_EQ(f.read_some_at(to, 5), 2U);
    EXPECT_EQ(static_cast<char>(x[0]), 'w');
  });
}

// req: IO-13
TEST_F(File, an_open_that_fails_names_operation_path_and_reason_in_both_forms) {
  in_thread_and_tasks([&] {
    const path missing = dir / "missing";
    EXPECT_EQ(message_of([&] { (void)file::open(missing); }, std::errc::no_such_file_or_directory),
              "weft: open \"" + missing.native() + "\": No such file or directory");
    std::error_code why;
    const file f = file::open(missing, {}, why);
    EXPECT_EQ(why, std::errc::no_such_file_or_directory);
    EXPECT_FALSE(f.is_open());
    const file made = file::open(missing, for_writing, why);
    EXPECT_FALSE(why) << "cleared";
    std::filesystem::remove(missing);
  });
}

// req: IO-13
TEST_F(File, bad_arguments_of_open_are_told) {
  in_thread_and_tasks([&] {
    const path p = dir / "f";
    const auto fails = [](const path& which, const open_options& how, std::errc expected) {
      std::error_code why;
      EXPECT_FALSE(file::open(which, how, why).is_open());
      EXPECT_EQ(why, expected);
      (void)message_of([&] { (void)file::open(which, how); }, expected);
    };
    fails(p, {.read = false}, std::errc::invalid_argument);
    fails(p, {.truncate = true}, std::errc::invalid_argument);
    fails(p, {.write = true, .exclusive = true}, std::errc::invalid_argument);
    fails(p, {.write = true, .create = true, .permissions = 010000}, std::errc::invalid_argument);
    fails(std::string("f\0g", 3), for_writing, std::errc::invalid_argument);
    fails("", {}, std::errc::no_such_file_or_directory);
    fails(dir / std::string(300, 'x'), for_writing, std::errc::filename_too_long);
    fails(std::string(5000, 'x'), {}, std::errc::filename_too_long);
    fails(dir.directory(), {.write = true}, std::errc::is_a_directory);
    EXPECT_EQ(dir.entries(), 0U);
  });
}

TEST_F(File, options_do_what_they_say) {
  in_thread_and_tasks([&] {
    const path p = dir.with("f", "12345");
    std::error_code why;
    (void)file::open(p, {.write = true, .create = true, .exclusive = true}, why);
    EXPECT_EQ(why, std::errc::file_exists);
    file log = file::open(p, {.append = true});
    log.write_all_at("67", 0);
    EXPECT_EQ(fs::read_file(p), "1234567");
    EXPECT_EQ(file::open(p, {.write = true, .truncate = true}).size(), 0U);
    const path private_file = dir / "private";
    const file mine = file::open(
        private_file, {.read = false, .write = true, .create = true, .exclusive = true, .permissions = 0600});
    EXPECT_EQ(mine.stat().permissions, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    std::filesystem::create_symlink("f", dir / "link");
    (void)file::open(dir / "link", {.further_flags = O_NOFOLLOW}, why);
    EXPECT_EQ(why, std::errc::too_many_symbolic_link_levels);
    std::filesystem::remove(private_file);
    std::filesystem::remove(dir / "link");
  });
}

TEST_F(File, is_closed_at_exec) {
  const file f = file::open(dir / "f", for_writing);
  EXPECT_NE(::fcntl(f.native_handle(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(File, tells_and_changes_its_size) {
  in_thread_and_tasks([&] {
    const path p = dir.with("f", "12345");
    file f = file::open(p, {.write = true});
    f.truncate(3);
    EXPECT_EQ(fs::read_file(p), "123");
    f.truncate(5);
    EXPECT_EQ(fs::read_file(p), std::string("123\0\0", 5));
    std::error_code why;
    f.allocate(0, 100'000, why);
    if (why != std::errc::operation_not_supported) {
      EXPECT_FALSE(why);
      EXPECT_EQ(f.size(), 100'000U);
      EXPECT_GE(f.stat().allocated, 100'000U);
    }
    f.sync();
    f.data_sync();
    const fs::file_info about = f.stat();
    EXPECT_EQ(about.type, std::filesystem::file_type::regular);
    EXPECT_EQ(about.links, 1U);
    EXPECT_NE(about.inode, 0U);
    EXPECT_GT(about.modified, fs::file_time());
    EXPECT_EQ(file::open("/dev/null").stat().type, std::filesystem::file_type::character);
    EXPECT_EQ(file::open(dir.directory()).stat().type, std::filesystem::file_type::directory);
  });
}

// Every operation on a file, in both forms. The one that throws comes first.
struct operation {
  const char* name;
  std::function<void(file&)> throwing;
  std::function<void(file&, std::error_code&)> with_code;
};
const std::vector<operation>& operations() {
  static char room[8];
  static const mutable_buffer to[] = {room, room};
  static const const_buffer from[] = {room, room};
  static const std::vector<operation> all = {
      {"read", [](file& f) { (void)f.read_some_at(room, 0); },
       [](file& f, std::error_code& why) { (void)f.read_some_at(room, 0, why); }},
      {"read", [](file& f) { (void)f.read_at(room, 0); },
       [](file& f, std::error_code& why) { (void)f.read_at(room, 0, why); }},
      {"read", [](file& f) { (void)f.read_some_at(to, 0); },
       [](file& f, std::error_code& why) { (void)f.read_some_at(to, 0, why); }},
      {"read", [](file& f) { (void)f.read_at(to, 0); },
       [](file& f, std::error_code& why) { (void)f.read_at(to, 0, why); }},
      {"read", [](file& f) { (void)fs::reader(f).read_some(room); },
       [](file& f, std::error_code& why) { (void)fs::reader(f).read_some(room, why); }},
      {"write", [](file& f) { (void)f.write_some_at(room, 0); },
       [](file& f, std::error_code& why) { (void)f.write_some_at(room, 0, why); }},
      {"write", [](file& f) { f.write_all_at(room, 0); },
       [](file& f, std::error_code& why) { (void)f.write_all_at(room, 0, why); }},
      {"write", [](file& f) { (void)f.write_some_at(from, 0); },
       [](file& f, std::error_code& why) { (void)f.write_some_at(from, 0, why); }},
      {"write", [](file& f) { f.write_all_at(from, 0); },
       [](file& f, std::error_code& why) { (void)f.write_all_at(from, 0, why); }},
      {"write", [](file& f) { (void)fs::writer(f).write_some(room); },
       [](file& f, std::error_code& why) { (void)fs::writer(f).write_some(room, why); }},
      {"write", [](file& f) { fs::writer(f).write_all(room); },
       [](file& f, std::error_code& why) { (void)fs::writer(f).write_all(room, why); }},
      {"sync", [](file& f) { f.sync(); }, [](file& f, std::error_code& why) { f.sync(why); }},
      {"sync", [](file& f) { f.data_sync(); }, [](file& f, std::error_code& why) { f.data_sync(why); }},
      {"stat", [](file& f) { (void)f.stat(); }, [](file& f, std::error_code& why) { (void)f.stat(why); }},
      {"stat", [](file& f) { (void)f.size(); }, [](file& f, std::error_code& why) { (void)f.size(why); }},
      {"truncate", [](file& f) { f.truncate(1); }, [](file& f, std::error_code& why) { f.truncate(1, why); }},
      {"allocate", [](file& f) { f.allocate(0, 1); }, [](file& f, std::error_code& why) { f.allocate(0, 1, why); }},
  };
  return all;
}

// The size is what data_sync may leave out of a file's data about itself.
// req: IO-9
TEST_F(File, sync_and_data_sync_are_different_calls) {
  static io::kernel_calls counting = io::real_kernel();
  static base::atomic<int> whole{0}, data{0};
  counting.fsync = [](int) noexcept { return ++whole, 0; };
  counting.fdatasync = [](int) noexcept { return ++data, 0; };
  in_thread_and_tasks([&] {
    whole = data = 0;
    file f = open_with(counting, dir / "f", for_writing);
    f.sync();
    EXPECT_EQ(whole, 1);
    EXPECT_EQ(data, 0);
    f.data_sync();
    EXPECT_EQ(whole, 1);
    EXPECT_EQ(data, 1);
    f.close();
  });
}

// req: IO-13
TEST_F(File, each_operation_tells_the_error_of_the_kernel_in_both_forms) {
  static io::kernel_calls broken = io::real_kernel();
  static const auto fail = []() noexcept {
    errno = EIO;
    return -1;
  };
  broken.preadv2 = [](int, const iovec*, int, off_t, int) noexcept -> ssize_t { return fail(); };
  broken.pwritev2 = [](int, const iovec*, int, off_t, int) noexcept -> ssize_t { return fail(); };
  broken.fsync = broken.fdatasync = [](int) noexcept { return fail(); };
  broken.fstat = [](int, struct stat*) noexcept { return fail(); };
  broken.ftruncate = [](int, off_t) noexcept { return fail(); };
  broken.fallocate = [](int, int, off_t, off_t) noexcept { return fail(); };
  in_thread_and_tasks([&] {
    file f = open_with(broken, dir / "f", for_writing);
    for (const operation& o : operations()) {
      const std::string expected =
          std::string("weft: ") + o.name + " \"" + (dir / "f").native() + "\": Input/output error";
      EXPECT_EQ(message_of([&] { o.throwing(f); }, std::errc::io_error), expected);
      std::error_code why;
      o.with_code(f, why);
      EXPECT_EQ(why, std::errc::io_error) << o.name;
    }
  });
}

// req: IO-13
TEST_F(File, each_operation_clears_the_error_code_when_it_succeeds) {
  in_thread_and_tasks([&] {
    file f = file::open(dir / "f", for_writing);
    for (const operation& o : operations()) {
      std::error_code why = std::make_error_code(std::errc::io_error);
      o.with_code(f, why);
      EXPECT_FALSE(why) << o.name;
      o.throwing(f);
    }
    std::error_code why = std::make_error_code(std::errc::io_error);
    f.close(why);
    EXPECT_FALSE(why);
  });
}

// req: IO-13
TEST_F(File, a_closed_file_is_a_bad_descriptor_and_an_empty_one_a_mistake) {
  in_thread_and_tasks([&] {
    file f = file::open(dir / "f", for_writing);
    f.close();
    f.close();
    EXPECT_FALSE(f.is_open());
    EXPECT_EQ(f.native_handle(), -1);
    EXPECT_EQ(f.release(), -1);
    file moved = std::move(f);
    file never;
    for (const operation& o : operations()) {
      std::error_code why;
      o.with_code(moved, why);
      EXPECT_EQ(why, std::errc::bad_file_descriptor) << o.name;
      (void)message_of([&] { o.throwing(moved); }, std::errc::bad_file_descriptor);
      for (file* empty : {&f, &never}) {  // f was moved from
        EXPECT_THROW(o.throwing(*empty), weft::usage_error) << o.name;
        EXPECT_THROW(o.with_code(*empty, why), weft::usage_error) << o.name;
      }
    }
    never.close();
    EXPECT_EQ(never.native_handle(), -1);
    EXPECT_EQ(never.release(), -1);
  });
}

// req: IO-9
TEST_F(File, each_operation_of_a_cancelled_task_throws_in_both_forms_and_does_nothing) {
  at_worker_counts_in_a_task([&] {
    const path p = dir.with("f", "untouched");
    auto t = weft::spawn([&] {
      file f = file::open(p, {.write = true});
      weft::this_task::ref().cancel();
      std::error_code why;
      for (const operation& o : operations()) {
        EXPECT_TRUE(throws_cancelled([&] { o.throwing(f); })) << o.name;
        EXPECT_TRUE(throws_cancelled([&] { o.with_code(f, why); })) << o.name;
      }
      EXPECT_TRUE(throws_cancelled([&] { (void)f.read_at(mutable_buffer(nullptr, 0), 0); })) << "always, or never";
      EXPECT_TRUE(throws_cancelled([&] { (void)file::open(p, {.write = true, .truncate = true}); }));
      EXPECT_TRUE(throws_cancelled([&] { (void)file::open(dir / "new", for_writing, why); }));
      EXPECT_TRUE(throws_cancelled([&] { (void)fs::read_file(p); }));
      EXPECT_TRUE(throws_cancelled([&] { fs::write_file(p, "x"); }));
      EXPECT_TRUE(throws_cancelled([&] { (void)fs::list(dir.directory()); }));
      f.close();  // never
      EXPECT_FALSE(f.is_open());
    });
    t.join();
    EXPECT_EQ(fs::read_file(p), "untouched");
    EXPECT_EQ(dir.entries(), 1U);
  });
}

TEST_F(File, nothing_to_transfer_is_no_call_and_no_end) {
  static io::kernel_calls none = io::real_kernel();
  none.preadv2 = [](int, const iovec*, int, off_t, int) noexcept -> ssize_t { std::abort(); };
  none.pwritev2 = [](int, const iovec*, int, off_t, int) noexcept -> ssize_t { std::abort(); };
  in_thread_and_tasks([&] {
    file f = open_with(none, dir / "f", for_writing);
    const mutable_buffer empty(nullptr, 0);
    EXPECT_EQ(f.read_at(empty, 0), 0U);
    EXPECT_EQ(f.read_some_at(empty, 0), 0U);
    EXPECT_EQ(f.read_at(std::span<const mutable_buffer>(), 0), 0U);
    EXPECT_EQ(f.write_some_at(empty, 0), 0U);
    f.write_all_at(std::span<const const_buffer>(), 0);
    f.write_all_at("", 0);
  });
}

TEST_F(File, offsets_beyond_those_of_the_kernel_are_refused) {
  in_thread_and_tasks([&] {
    file f = file::open(dir / "f", for_writing);
    char room[4] = {};
    for (const std::uint64_t offset : {UINT64_MAX, UINT64_MAX - 1, std::uint64_t{1} << 63}) {
      std::error_code why;
      EXPECT_EQ(f.read_at(room, offset, why), 0U);
      EXPECT_EQ(why, std::errc::invalid_argument);
      EXPECT_EQ(f.write_all_at(room, offset, why), 0U);
      EXPECT_EQ(why, std::errc::invalid_argument);
      f.truncate(offset, why);
      EXPECT_EQ(why, std::errc::invalid_argument);
      f.allocate(offset, 1, why);
      EXPECT_EQ(why, std::errc::invalid_argument);
    }
    std::error_code why;
    EXPECT_EQ(f.write_all_at(room, INT64_MAX, why), 0U);
    EXPECT_TRUE(why);
    EXPECT_EQ(f.size(), 0U);
  });
}

TEST_F(File, a_descriptor_can_be_given_away_and_taken_over) {
  file f = file::open(dir.with("f", "text"));
  const int fd = f.native_handle();
  EXPECT_EQ(f.release(), fd);
  EXPECT_FALSE(f.is_open());
  file again = file::adopt(fd, "my file");
  EXPECT_EQ(again.native_handle(), fd);
  EXPECT_EQ(again.size(), 4U);
  EXPECT_EQ(message_of([&] { again.write_all_at("x", 0); }, std::errc::bad_file_descriptor),
            "weft: write \"my file\": Bad file descriptor");
  again = file::adopt(::dup(fd));
  EXPECT_NE(message_of([&] { again.write_all_at("x", 0); }, std::errc::bad_file_descriptor).find("\"descriptor "),
            std::string::npos);
  EXPECT_THROW((void)file::adopt(-1), weft::usage_error);
}

// req: IO-9
TEST_F(File, is_read_and_written_from_front_to_back) {
  in_thread_and_tasks([&] {
    file f = file::open(dir / "f", {.write = true, .create = true, .truncate = true});
    fs::writer out(f);
    out.write_all("one ");
    EXPECT_EQ(out.write_some("two"), 3U);
    EXPECT_EQ(out.position(), 7U);
    out.seek(0);
    out.write_all("ONE");
    fs::reader in(f, 1);
    char room[5] = {};
    std::string all;
    while (const std::size_t n = in.read_some(room)) all.append(room, n);
    EXPECT_EQ(all, "NE two");
    EXPECT_EQ(in.position(), 7U);
    f.write_all_at("!", 7);
    EXPECT_EQ(in.read_some(room), 1U) << "it sees what was added";
    in.seek(0);
    EXPECT_EQ(in.read_some(room), 5U);
  });
}

}  // namespace
