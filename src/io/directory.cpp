// Directories: entries are read off the worker, up to a batch at a time, and handed out one by one.
#include <weft/fs/directory.hpp>

#include "io/file_calls.hpp"
#include "io/file_error.hpp"
#include <weft/errors.hpp>

namespace weft::inline v1 {
namespace io {

using std::filesystem::directory_iterator;
using std::filesystem::file_type;

namespace {

// The file system has told the type together with the name, as a rule, and std::filesystem has kept it. Only this way of
// asking makes no further system call: symlink_status() always makes one.
file_type type_of(const std::filesystem::directory_entry& e) noexcept {
  std::error_code vanished;
  if (e.is_symlink(vanished)) return file_type::symlink;
  if (e.is_regular_file(vanished)) return file_type::regular;
  if (e.is_directory(vanished)) return file_type::directory;
  if (e.is_fifo(vanished)) return file_type::fifo;
  if (e.is_socket(vanished)) return file_type::socket;
  if (e.is_character_file(vanished)) return file_type::character;
  if (e.is_block_file(vanished)) return file_type::block;
  return file_type::unknown;
}

}  // namespace

// A directory that was handed out waits in `to_enter_` until it is its turn, so one directory is open at a time. It gets
// there only when the next entry is asked for, because the caller may skip() it.
class directory_walk {
 public:
  // Called off the worker. Opens the directory that was asked for.
  [[nodiscard]] std::error_code start(const std::filesystem::path& root) {
    std::error_code why;
    at_ = directory_iterator(root, why);
    open_path_ = root;
    return why;
  }

  // Called off the worker: reads a batch. If it is empty afterwards there is an error, or this is the end.
  void fill() {
    batch_.clear();
    given_ = 0;
    while (batch_.empty() && !why_ && enter_next()) read_open_directory();
  }
  [[nodiscard]] bool needs_fill() const noexcept { return given_ == batch_.size() && !why_; }

  // Hands out what fill() has found.
  [[nodiscard]] std::optional<fs::entry> take() {
    if (given_ == batch_.size()) return {};
    fs::entry next = std::move(batch_[given_++]);
    if (next.type == file_type::directory) last_ = next;
    return next;
  }
  [[nodiscard]] std::error_code take_error() noexcept { return std::exchange(why_, {}); }
  [[nodiscard]] const std::filesystem::path& open_path() const noexcept { return open_path_; }

  void skip() noexcept { last_.reset(); }
  void keep_for_later() {
    if (!last_) return;
    to_enter_.push_back(std::move(*last_));
    last_.reset();
  }

 private:
  static constexpr std::size_t most_in_batch = 256;

  // Makes sure that a directory is open, and returns false at the end of the walk.
  [[nodiscard]] bool enter_next() {
    while (at_ == directory_iterator()) {
      if (to_enter_.empty()) return false;
      open_path_ = std::move(to_enter_.back().path);
      depth_ = to_enter_.back().depth + 1;
      to_enter_.pop_back();
      at_ = directory_iterator(open_path_, why_);
      if (why_ == std::errc::no_such_file_or_directory) why_.clear();  // it has vanished meanwhile
      if (why_) return false;
    }
    return true;
  }
  void read_open_directory() {
    while (at_ != directory_iterator() && batch_.size() < most_in_batch) {
      batch_.push_back({at_->path(), type_of(*at_), depth_});
      at_.increment(why_);  // if this fails, it is at the end
    }
  }

  directory_iterator at_;
  std::filesystem::path open_path_;
  std::size_t depth_ = 0;
  std::vector<fs::entry> batch_;
  std::size_t given_ = 0;  // how many of the batch were handed out
  std::error_code why_;  // comes behind the batch
  std::optional<fs::entry> last_;  // a directory, if the entry that was handed out last is one
  std::vector<fs::entry> to_enter_;
};

void walk_closer::operator()(directory_walk* w) const noexcept { delete w; }

}  // namespace io

namespace fs {
namespace {

std::vector<entry> entries_of(walker all, std::error_code* why, std::source_location where) {
  std::vector<entry> found;
  for (;;) {
    std::optional<entry> next = why == nullptr ? all.next(where) : all.next(*why, where);
    if (!next) return found;
    all.skip();
    found.push_back(std::move(*next));
  }
}

}  // namespace

void walker::start(const std::filesystem::path& directory, std::error_code* why, std::source_location where) {
  io::begin_operation(where);
  core_.reset(new io::directory_walk);
  const std::error_code error = blocking([&] { return core_->start(directory); }, where);
  io::tell({error, "list"}, directory.native(), why);
}

std::optional<entry> walker::advance(std::error_code* why, std::source_location where) {
  if (core_ == nullptr) detail::throw_usage("a fs::walker is used that was moved from", where);
  io::begin_operation(where);
  core_->keep_for_later();
  if (core_->needs_fill()) blocking([&] { core_->fill(); }, where);
  std::optional<entry> next = core_->take();
  const std::error_code error = next ? std::error_code() : core_->take_error();
  io::tell({error, "list"}, core_->open_path().native(), why);
  return next;
}

void walker::skip() noexcept {
  if (core_ != nullptr) core_->skip();
}

walker walk(const std::filesystem::path& directory, std::source_location where) {
  walker w;
  w.start(directory, nullptr, where);
  return w;
}
walker walk(const std::filesystem::path& directory, std::error_code& why, std::source_location where) {
  walker w;
  w.start(directory, &why, where);
  return w;
}

std::vector<entry> list(const std::filesystem::path& directory, std::source_location where) {
  return entries_of(walk(directory, where), nullptr, where);
}
std::vector<entry> list(const std::filesystem::path& directory, std::error_code& why, std::source_location where) {
  walker all = walk(directory, why, where);
  return why ? std::vector<entry>() : entries_of(std::move(all), &why, where);
}

}  // namespace fs
}  // namespace weft::inline v1
