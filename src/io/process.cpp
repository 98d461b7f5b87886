#include <weft/process.hpp>

#include "io/child.hpp"
#include "io/socket.hpp"
#include "io/spawn.hpp"
#include <weft/detail/task_core.hpp>
#include <weft/dispatcher.hpp>
#include <weft/this_task.hpp>

namespace weft::inline v1 {

// ---- starting and ending --------------------------------------------------------------------------------------------

process::process() noexcept = default;

process::process(const std::vector<std::string>& arguments, const process_options& o, std::error_code& why,
                 source where) {
  if (arguments.empty()) detail::throw_usage("a process needs the name of a program, arguments[0]", where);
  const io::kernel_calls& calls = io::kernel_of_caller();
  io::sweep_detached();
  io::started_process started = blocking([&] { return io::start_process(calls, arguments, o, why); }, where);
  child_ = std::move(started.who);
  input_ = pipe_writer(std::move(started.pipes[0]));
  output_ = pipe_reader(std::move(started.pipes[1]));
  error_ = pipe_reader(std::move(started.pipes[2]));
}

process::process(const std::vector<std::string>& arguments, const process_options& o, source where) {
  std::error_code why;
  *this = process(arguments, o, why, where);
  if (!why) return;
  std::string what = "start " + arguments.front();
  if (!o.directory.empty()) what += " in " + o.directory.string();
  throw std::system_error(why, what);
}

process::process(process&& other) noexcept = default;

process& process::operator=(process&& other) noexcept {
  const process before(std::move(*this));
  child_ = std::move(other.child_);
  input_ = std::move(other.input_);
  output_ = std::move(other.output_);
  error_ = std::move(other.error_);
  return *this;
}

process::~process() {
  if (child_ != nullptr) child_->end();
}

void process::detach() {
  its_child().detach();
  child_.reset();
  io::sweep_detached();
  input_ = {};
  output_ = {};
  error_ = {};
}

// ---- its parts ------------------------------------------------------------------------------------------------------

io::child& process::its_child() const {
  if (child_ == nullptr)
    detail::throw_usage("a process is used that was never started, was moved from, or was detached");
  return *child_;
}

namespace {

template <class Pipe>
Pipe& require_pipe(Pipe& p) {
  (void)p.record();  // throws usage_error
  return p;
}

}  // namespace

pid_t process::id() const { return its_child().id(); }
pipe_writer& process::input() { return require_pipe(input_); }
pipe_reader& process::output() { return require_pipe(output_); }
pipe_reader& process::error() { return require_pipe(error_); }

// ---- waiting --------------------------------------------------------------------------------------------------------

namespace {

[[noreturn]] void throw_error_of(const char* operation, const std::error_code& why, const io::child& c) {
  throw std::system_error(why, std::string(operation) + " process " + std::to_string(c.id()));
}

}  // namespace

exit_status process::wait(std::error_code& why, source where) const {
  return its_child().wait({io::without_limit, where}, why).value_or(exit_status());
}

exit_status process::wait(source where) const {
  std::error_code why;
  const exit_status how = wait(why, where);
  if (why) throw_error_of("wait for", why, *child_);
  return how;
}

std::optional<exit_status> process::wait_until(time_point when, source where) const {
  std::error_code why;
  const auto how = its_child().wait({when, where}, why);
  if (why && why != std::errc::timed_out) throw_error_of("wait for", why, *child_);
  return how;
}

std::optional<exit_status> process::try_wait() const { return its_child().look(); }
exit_arm process::exited() const { return exit_arm(its_child()); }

bool process::kill(int signal_number, std::error_code& why) const { return its_child().send(signal_number, why); }

bool process::kill(int signal_number) const {
  std::error_code why;
  const bool is_sent = kill(signal_number, why);
  if (why) throw_error_of("send a signal to", why, *child_);
  return is_sent;
}

// ---- the arm --------------------------------------------------------------------------------------------------------

exit_arm::exit_arm(io::child& c) noexcept : child_(&c), ready_(c.record(), io::side::read) {}
detail::tried exit_arm::try_at_once() { return ready_.try_at_once(); }
waits::arm exit_arm::prepare() { return ready_.prepare(); }

// A child that a debugger holds has ended, but its parent learns that later. Then this waits; the select has been won.
bool exit_arm::complete() {
  (void)ready_.complete();
  const this_task::shield held;
  std::error_code why;
  if (const auto how = child_->wait({}, why)) how_ = *how;
  return true;
}

}  // namespace weft::inline v1
