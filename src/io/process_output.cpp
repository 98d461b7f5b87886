// Running a program to its end, and collecting what it writes.
#include <future>

#include <weft/process.hpp>
#include <weft/scope.hpp>
#include <weft/this_task.hpp>

namespace weft::inline v1 {
namespace {

// Closes the pipe also when it fails: a child that writes must not wait for a reader that is gone.
void read_output(pipe_reader& pipe, std::string& to, std::source_location where) {
  const pipe_reader from = std::move(pipe);
  std::string room(std::size_t{64} << 10, '\0');
  while (const std::size_t n = from.read_some(room, where)) to.append(room, 0, n);
}

void feed_input(pipe_writer& to, std::string_view text, std::source_location where) {
  std::error_code why;
  (void)to.write_all(text, why, where);
  to.close();
  if (why && why != std::errc::broken_pipe) throw std::system_error(why, "write to the input of a process");
}

// All at the same time: in tasks of their own, or in threads if this is called on a thread.
template <class F, class G, class H>
void all_together(F f, G g, H h) {
  if (this_task::running()) {
    with_scope([&](scope& s) {
      s.spawn(f);
      s.spawn(g);
      h();
    });
  } else {
    auto first = std::async(std::launch::async, f);
    auto second = std::async(std::launch::async, g);
    h();
    first.get();
    second.get();
  }
}

bool is_pipe(redirect r) noexcept { return r.what() == redirect::kind::pipe; }

}  // namespace

process_result run_process(const std::vector<std::string>& arguments, std::string_view input, process_options o,
                           std::source_location where) {
  if (!input.empty())
    o.input = redirect::pipe;
  else if (o.input.what() == redirect::kind::inherit)
    o.input = redirect::null;
  process p(arguments, o, where);
  process_result r;
  all_together(
      [&] {
        if (is_pipe(o.output)) read_output(p.output(), r.output, where);
      },
      [&] {
        if (is_pipe(o.error)) read_output(p.error(), r.error, where);
      },
      [&] {
        if (is_pipe(o.input)) feed_input(p.input(), input, where);
      });
  r.status = p.wait(where);
  return r;
}

process_failed::process_failed(const std::string& program, process_result result)
    : std::runtime_error(program + " " + result.status.to_string() + (result.error.empty() ? "" : ": " + result.error)),
      result_(std::make_shared<const process_result>(std::move(result))) {}
process_failed::~process_failed() = default;

std::string output_of(const std::vector<std::string>& arguments, std::source_location where) {
  process_result r = run_process(arguments, {}, {.output = redirect::pipe, .error = redirect::pipe}, where);
  if (!r.status.ok()) throw process_failed(arguments.front(), std::move(r));
  return std::move(r.output);
}

}  // namespace weft::inline v1
