// An open file: reads and writes at an offset, and what else can be done to it. fs.hpp says what holds for all of these.
//
// Any number of tasks may use a file at a time, also to close it: an operation that has begun is finished, and the last
// one of them gives the descriptor back. An operation on a closed file fails with errc::bad_file_descriptor.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <source_location>
#include <span>
#include <string_view>
#include <system_error>

#include <weft/buffer.hpp>
#include <weft/detail/config.hpp>

namespace weft::inline v1 {

namespace io {
class open_file;
struct file_access;
struct file_closer {
  WEFT_API void operator()(open_file* f) const noexcept;
};
}  // namespace io

namespace fs {

struct open_options {
  bool read = true;
  bool write = false;
  bool append = false;  // every write goes to the end of the file, whatever its offset is; implies `write`
  bool create = false;  // makes the file if there is none
  bool exclusive = false;  // with `create`: fails if there is one
  bool truncate = false;  // to size 0; needs `write`
  bool direct =
      false;  // O_DIRECT: past the page cache; buffers, sizes and offsets must be aligned as the disk wants it
  unsigned permissions = 0666;  // of a file that is made, less the umask
  int further_flags = 0;  // of open(2): O_NOFOLLOW, O_DSYNC, …
};

using file_time = std::chrono::sys_time<std::chrono::nanoseconds>;

struct file_info {
  std::uint64_t size = 0;
  std::uint64_t allocated = 0;  // bytes on the disk
  std::filesystem::file_type type = std::filesystem::file_type::none;
  std::filesystem::perms permissions = std::filesystem::perms::none;
  std::uint64_t device = 0, inode = 0, links = 0;
  file_time modified, changed, accessed;
};

class WEFT_API file {
 public:
  using place = std::source_location;

  file() noexcept = default;  // empty

  // Every descriptor is closed at exec. Options that contradict each other, and a path with a zero in it, are
  // errc::invalid_argument.
  [[nodiscard]] static file open(const std::filesystem::path& path, const open_options& how = {},
                                 place where = place::current()) {
    return opened(path, how, nullptr, where);
  }
  [[nodiscard]] static file open(const std::filesystem::path& path, const open_options& how, std::error_code& why,
                                 place where = place::current()) {
    return opened(path, how, &why, where);
  }
  // Takes over a descriptor. `name` is for messages. Never a cancellation point.
  [[nodiscard]] static file adopt(int fd, std::string_view name = {});

  // --- reading ------------------------------------------------------------------------------------------------------
  // Reads what one call of the kernel gives, and returns how many bytes that were: 0 at the end of the file.
  std::size_t read_some_at(mutable_buffer to, std::uint64_t offset, place where = place::current()) const {
    return read({&to, 1}, offset, amount::some, nullptr, where);
  }
  std::size_t read_some_at(mutable_buffer to, std::uint64_t offset, std::error_code& why,
                           place where = place::current()) const {
    return read({&to, 1}, offset, amount::some, &why, where);
  }
  // Several buffers, one after the other; any number of them.
  std::size_t read_some_at(std::span<const mutable_buffer> to, std::uint64_t offset,
                           place where = place::current()) const {
    return read(to, offset, amount::some, nullptr, where);
  }
  std::size_t read_some_at(std::span<const mutable_buffer> to, std::uint64_t offset, std::error_code& why,
                           place where = place::current()) const {
    return read(to, offset, amount::some, &why, where);
  }
  // Reads until the buffers are full or the file ends. After an error the count says how much was read before it.
  std::size_t read_at(mutable_buffer to, std::uint64_t offset, place where = place::current()) const {
    return read({&to, 1}, offset, amount::all, nullptr, where);
  }
  std::size_t read_at(mutable_buffer to, std::uint64_t offset, std::error_code& why,
                      place where = place::current()) const {
    return read({&to, 1}, offset, amount::all, &why, where);
  }
  std::size_t read_at(std::span<const mutable_buffer> to, std::uint64_t offset, place where = place::current()) const {
    return read(to, offset, amount::all, nullptr, where);
  }
  std::size_t read_at(std::span<const mutable_buffer> to, std::uint64_t offset, std::error_code& why,
                      place where = place::current()) const {
    return read(to, offset, amount::all, &why, where);
  }

  // --- writing ------------------------------------------------------------------------------------------------------
  // Writes what one call of the kernel takes, and returns how many bytes that were.
  std::size_t write_some_at(const_buffer from, std::uint64_t offset, place where = place::current()) {
    return write({&from, 1}, offset, amount::some, nullptr, where);
  }
  std::size_t write_some_at(const_buffer from, std::uint64_t offset, std::error_code& why,
                            place where = place::current()) {
    return write({&from, 1}, offset, amount::some, &why, where);
  }
  std::size_t write_some_at(std::span<const const_buffer> from, std::uint64_t offset, place where = place::current()) {
    return write(from, offset, amount::some, nullptr, where);
  }
  std::size_t write_some_at(std::span<const const_buffer> from, std::uint64_t offset, std::error_code& why,
                            place where = place::current()) {
    return write(from, offset, amount::some, &why, where);
  }
  // Writes everything. After an error the count says how much was written before it.
  void write_all_at(const_buffer from, std::uint64_t offset, place where = place::current()) {
    write({&from, 1}, offset, amount::all, nullptr, where);
  }
  std::size_t write_all_at(const_buffer from, std::uint64_t offset, std::error_code& why,
                           place where = place::current()) {
    return write({&from, 1}, offset, amount::all, &why, where);
  }
  void write_all_at(std::span<const const_buffer> from, std::uint64_t offset, place where = place::current()) {
    write(from, offset, amount::all, nullptr, where);
  }
  std::size_t write_all_at(std::span<const const_buffer> from, std::uint64_t offset, std::error_code& why,
                           place where = place::current()) {
    return write(from, offset, amount::all, &why, where);
  }

  // --- the file itself ----------------------------------------------------------------------------------------------
  // Returns when the disk has everything. data_sync() leaves out what is not needed to read the data, such as times.
  void sync(place where = place::current()) { flush(true, nullptr, where); }
  void sync(std::error_code& why, place where = place::current()) { flush(true, &why, where); }
  void data_sync(place where = place::current()) { flush(false, nullptr, where); }
  void data_sync(std::error_code& why, place where = place::current()) { flush(false, &why, where); }

  [[nodiscard]] file_info stat(place where = place::current()) const { return look(nullptr, where); }
  [[nodiscard]] file_info stat(std::error_code& why, place where = place::current()) const { return look(&why, where); }
  [[nodiscard]] std::uint64_t size(place where = place::current()) const { return look(nullptr, where).size; }
  [[nodiscard]] std::uint64_t size(std::error_code& why, place where = place::current()) const {
    return look(&why, where).size;
  }

  // Cuts the file off, or makes it longer by zeros.
  void truncate(std::uint64_t size, place where = place::current()) { resize(size, nullptr, where); }
  void truncate(std::uint64_t size, std::error_code& why, place where = place::current()) { resize(size, &why, where); }
  // Reserves room on the disk, so that a later write into it does not find the disk full. The file becomes as long.
  void allocate(std::uint64_t offset, std::uint64_t length, place where = place::current()) {
    reserve(offset, length, nullptr, where);
  }
  void allocate(std::uint64_t offset, std::uint64_t length, std::error_code& why, place where = place::current()) {
    reserve(offset, length, &why, where);
  }

  // --- the handle: never cancellation points ------------------------------------------------------------------------
  // Closing an empty handle or a closed file does nothing. An error of close() says that something written before may
  // be lost; the file is closed nevertheless. The destructor closes, too, on the thread that it runs on.
  void close(place where = place::current()) { shut(nullptr, where); }
  void close(std::error_code& why, place where = place::current()) { shut(&why, where); }
  [[nodiscard]] bool is_open() const noexcept { return native_handle() >= 0; }
  [[nodiscard]] std::string_view name() const noexcept;  // as in messages; "" if it is empty
  [[nodiscard]] int native_handle() const noexcept;  // -1 if it is empty or closed
  // Gives up the descriptor without closing it; -1 if it is empty or closed. While another task uses the file, this is a
  // usage_error.
  [[nodiscard]] int release();

 private:
  friend struct io::file_access;
  enum class amount : bool { some, all };

  // Without `why` these throw.
  static file opened(const std::filesystem::path& path, const open_options& how, std::error_code* why, place where);
  std::size_t read(std::span<const mutable_buffer> to, std::uint64_t offset, amount much, std::error_code* why,
                   place where) const;
  std::size_t write(std::span<const const_buffer> from, std::uint64_t offset, amount much, std::error_code* why,
                    place where);
  void flush(bool everything, std::error_code* why, place where);
  [[nodiscard]] file_info look(std::error_code* why, place where) const;
  void resize(std::uint64_t size, std::error_code* why, place where);
  void reserve(std::uint64_t offset, std::uint64_t length, std::error_code* why, place where);
  void shut(std::error_code* why, place where);

  std::unique_ptr<io::open_file, io::file_closer> core_;
};

}  // namespace fs
}  // namespace weft::inline v1
