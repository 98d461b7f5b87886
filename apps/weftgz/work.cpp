#include <weftgz/work.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <mutex>

#include <sys/stat.h>
#include <unistd.h>

#include <weft/dispatcher.hpp>
#include <weft/semaphore.hpp>
#include <weft/task_group.hpp>

#include <weftgz/compress.hpp>
#include <weftgz/decompress.hpp>
#include <weftgz/failure.hpp>
#include <weftgz/list.hpp>
#include <weftgz/names.hpp>
#include <weftgz/original.hpp>
#include <weftgz/target.hpp>

namespace weftgz {
namespace {

// Calls f, and reports what it throws as concerning `name`.
template <class F>
void guarded(const std::string& name, run_state& run, F&& f) {
  try {
    f();
  } catch (const io_failure& e) {
    if (e.code == std::errc::broken_pipe)
      run.report.pipe_is_closed();
    else
      run.report.error(e.name, e.what());
  } catch (const std::exception& e) {
    run.report.error(name, e.what());
  }
}

std::string percent(const totals& t) {
  char text[32];
  std::snprintf(text, sizeof text, "%5.1f%%", percent_saved(t));
  return text;
}

compression compression_for(const struct stat& info, const std::string& name, const options& how) {
  compression c;
  c.level = how.level;
  c.block_size = how.size_of_blocks();
  c.single = how.single;
  c.independent = how.independent;
  if (how.no_name) return c;
  c.name = name;
  // A header has 32 bits without sign for the time.
  if (info.st_mtime > 0 && info.st_mtime <= std::numeric_limits<std::uint32_t>::max())
    c.modified = static_cast<std::uint32_t>(info.st_mtime);
  return c;
}

// One pipeline from `in` to `out`. `name` is that of the input, for messages.
totals process(source& in, sink& out, const compression* how, const std::string& name, run_state& run) {
  if (how != nullptr) return compress(in, out, *how, run.shop);
  const bool copies = run.how.mode == mode::decompress && run.how.to_stdout && run.how.force;
  const decompressed d = decompress(in, out, {.copy_others = copies}, run.shop);
  if (d.garbage) run.report.warning(name, ": decompression OK, trailing garbage ignored");
  return d;
}

// --- to a file of its own ---------------------------------------------------------------------------------------------

// The name of the result, or nothing if there is none to be had. `modified` becomes the time that the header holds if it
// is to be restored.
std::optional<std::string> name_of_result(const item& i, const original& o, std::uint32_t& modified, run_state& run) {
  const options& how = run.how;
  if (how.mode == mode::compress) {
    const std::string_view suffix = suffix_of(o.path, how.suffix);
    if (suffix.empty() || how.force) return o.path + how.suffix;
    if (!i.found) run.report.warning(o.path, " already has " + std::string(suffix) + " suffix -- unchanged");
    return std::nullopt;
  }
  std::optional<std::string> name = decompressed_name(o.path, how.suffix);
  if (how.name) {
    if (const std::optional<header> h = first_header(o.file)) {
      modified = h->modified;
      if (auto stored = beside(o.path, h->name)) name = std::move(stored);
    }
  }
  if (!name && !i.found) run.report.warning(o.path, ": unknown suffix -- ignored");
  return name;
}

// Asks only at a terminal. Elsewhere the answer is no.
bool may_replace(const std::string& path, run_state& run) {
  struct stat s;
  if (run.how.force || lstat(path.c_str(), &s) != 0) return true;
  if (isatty(STDIN_FILENO) != 0 && !run.how.quiet) {
    const std::lock_guard one_question(run.asking);
    clear_progress();
    std::fprintf(stderr, "weftgz: %s already exists; do you wish to overwrite (y or n)? ", path.c_str());
    char answer[16] = "";
    const bool answered = weft::blocking([&] { return std::fgets(answer, sizeof answer, stdin) != nullptr; });
    if (answered && (answer[0] == 'y' || answer[0] == 'Y')) return true;
  }
  run.report.warning(path, " already exists; not overwritten");
  return false;
}

void to_file(const item& i, original& o, run_state& run) {
  std::uint32_t modified = 0;
  const std::optional<std::string> name = name_of_result(i, o, modified, run);
  if (!name || !may_replace(*name, run)) return;
  struct stat before;
  const bool replaces = lstat(name->c_str(), &before) == 0;  // allowed by now
  if (replaces && before.st_dev == o.info.st_dev &&
      before.st_ino == o.info.st_ino)  // -N found its own name in the header
    return run.report.error(o.path, "input and output are the same file");
  target result(*name);
  file_source in(o.file, o.path, run.count);
  file_sink out(result.file(), *name, run.count);
  const compression how = compression_for(o.info, std::string(last_part(o.path)), run.how);
  const totals sum = process(in, out, run.how.mode == mode::compress ? &how : nullptr, o.path, run);
  if (!result.commit(o.info, modified, replaces)) {
    run.report.warning(*name, " already exists; not overwritten");
    return;
  }
  // Only now, when the result is complete and has its name, the original may go.
  if (!run.how.keep && unlink(o.path.c_str()) != 0) throw io_failure(o.path, {errno, std::generic_category()});
  if (run.how.verbose > 0)
    run.report.note(o.path + ":\t" + percent(sum) + " -- " + (run.how.keep ? "created " : "replaced with ") + *name);
}

// --- to stdout, or nowhere --------------------------------------------------------------------------------------------

void list(source& in, const original* o, totals& all, run_state& run) {
  const bool verbose = run.how.verbose > 0;
  std::optional<decompressed> sum;
  if (o != nullptr) sum = sums_of_sized_members(o->file);
  if (!sum) {
    no_sink out(run.count);
    sum = decompress(in, out, {}, run.shop);
    if (sum->garbage) run.report.warning(o != nullptr ? o->path : "stdin", ": trailing garbage ignored");
  }
  std::string name = "stdout";
  std::uint32_t modified = 0;
  if (o != nullptr) {
    name = decompressed_name(o->path, run.how.suffix).value_or(o->path);
    modified = static_cast<std::uint32_t>(o->info.st_mtime);
    const std::optional<header> h = first_header(o->file);
    if (h && !run.how.no_name && h->modified != 0) modified = h->modified;
    if (h && run.how.name) name = beside(o->path, h->name).value_or(name);
  }
  print_list_line(*sum, name, modified, verbose);
  all.packed += sum->packed;
  all.plain += sum->plain;
}

void to_stdout(source& in, const compression& how, const std::string& name, run_state& run) {
  totals sum;
  if (run.how.mode == mode::test) {
    no_sink out(run.count);
    sum = process(in, out, nullptr, name, run);
  } else {
    standard_output out(run.count);
    sum = process(in, out, run.how.mode == mode::compress ? &how : nullptr, name, run);
  }
  if (run.how.verbose > 0)
    run.report.note(name + ":\t" + (run.how.mode == mode::test ? " OK" : percent(sum) + " -- replaced with stdout"));
}

bool terminal_objects(run_state& run) {
  if (run.how.force) return false;
  if (run.how.mode == mode::compress && isatty(STDOUT_FILENO) != 0) {
    run.report.error("compressed data not written to a terminal", "use -f to force compression");
    return true;
  }
  return false;
}

void standard_stream(totals& listed, run_state& run) {
  if (run.how.mode != mode::compress && !run.how.force && isatty(STDIN_FILENO) != 0)
    return run.report.error("compressed data not read from a terminal", "use -f to force decompression");
  if (terminal_objects(run)) return;
  standard_input in(run.count);
  if (run.how.mode == mode::list) return list(in, nullptr, listed, run);
  struct stat s = {};
  if (fstat(STDIN_FILENO, &s) != 0 || !S_ISREG(s.st_mode)) s.st_mtime = 0;
  to_stdout(in, compression_for(s, {}, run.how), "stdin", run);
}

void one(const item& i, totals& listed, run_state& run) {
  if (i.path == "-") return guarded("stdin", run, [&] { standard_stream(listed, run); });
  guarded(i.path, run, [&] {
    std::optional<original> o = open_original(i, run);
    if (!o) return;
    guarded(o->path, run, [&] {  // its name with the suffix
      if (run.how.writes_files()) return to_file(i, *o, run);
      if (run.how.mode != mode::list && run.how.mode != mode::test && terminal_objects(run)) return;
      file_source in(o->file, o->path, run.count);
      if (run.how.mode == mode::list) return list(in, &*o, listed, run);
      to_stdout(in, compression_for(o->info, std::string(last_part(o->path)), run.how), o->path, run);
    });
  });
}

void one_by_one(const std::vector<item>& items, run_state& run) {
  totals listed;
  const bool lists = run.how.mode == mode::list;
  if (lists && !run.how.quiet) print_list_head(run.how.verbose > 0);
  for (const item& i : items) {
    one(i, listed, run);
    if (run.report.is_pipe_closed()) return;
  }
  if (lists && items.size() > 1) print_list_totals(listed, run.how.verbose > 0);
  if (lists && std::fflush(stdout) != 0) run.report.error("stdout", "write failed");
}

void side_by_side(const std::vector<item>& items, std::size_t at_a_time, run_state& run) {
  weft::semaphore slots(at_a_time);
  weft::task_group group;
  for (const item& i : items) {
    slots.acquire();
    group.spawn({.name = "file"}, [&] {
      struct releasing {
        weft::semaphore& of;
        ~releasing() { of.release(); }
      } const at_the_end{slots};
      totals none;
      one(i, none, run);
    });
  }
  group.join();
}

// For the progress bar: all of the input, as far as files say how long they are.
void expect(const std::vector<item>& items, run_state& run) {
  for (const item& i : items) {
    struct stat s;
    const int status = i.path == "-" ? fstat(STDIN_FILENO, &s) : stat(i.path.c_str(), &s);
    if (status == 0 && S_ISREG(s.st_mode)) run.count.expect(static_cast<std::uint64_t>(s.st_size));
  }
}

}  // namespace

void do_all(run_state& run, std::size_t at_a_time) {
  const std::vector<item> items = run.how.files.empty() ? std::vector{item{"-", false}} : items_of(run);
  expect(items, run);
  const bool reads_stdin = std::ranges::any_of(items, [](const item& i) { return i.path == "-"; });
  if (items.size() < 2 || reads_stdin || !(run.how.writes_files() || run.how.mode == mode::test))
    one_by_one(items, run);
  else
    side_by_side(items, at_a_time, run);
}

}  // namespace weftgz
