// Child processes in blocking style: only the task waits.
//
//   std::string text = weft::output_of({"git", "log", "-1"});                      // throws if git fails
//
//   weft::process sort({"sort", "-u"}, {.input = weft::redirect::pipe, .output = weft::redirect::pipe});
//   sort.input().write_all("b\na\nb\n");
//   sort.input().close();                                                          // or sort waits for more
//   …                                                                              // read sort.output() to its end
//   weft::exit_status how = sort.wait();
//
// A child that writes much waits until somebody reads, on all of its pipes. Who reads one to its end before another may
// wait for ever; run_process() reads both at the same time.
//
// The program is found as the shell finds it (PATH of the parent). The child gets the descriptors 0, 1 and 2 and no
// others of Weft's, an empty signal mask, and the default action for SIGPIPE. A program that cannot be started is an
// error of the constructor.
//
// A stopped child (SIGSTOP) has not ended. Needs Linux 5.4 (pidfd_open and waitid on it).
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <concepts>
#include <memory>
#include <optional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <weft/exit_status.hpp>
#include <weft/pipe.hpp>
#include <weft/process_options.hpp>
#include <weft/select.hpp>

namespace weft::inline v1 {

namespace io {
class child;
}

// An arm of a select that wins when a child process has ended.
class WEFT_API exit_arm final : public select_arm {
 public:
  explicit exit_arm(io::child& c) noexcept;
  // Needs a task (usage_error).
  [[nodiscard]] detail::tried try_at_once() override;
  [[nodiscard]] waits::arm prepare() override;
  [[nodiscard]] bool complete() override;
  template <class F>
  void tell(F& f, bool) {
    if constexpr (std::invocable<F&, exit_status>)
      f(how_);
    else
      f();
  }

 private:
  io::child* child_;
  net::ready_arm ready_;
  exit_status how_;
};

class WEFT_API process final {
 public:
  using source = std::source_location;
  using time_point = std::chrono::steady_clock::time_point;

  process() noexcept;  // no process: whatever is called on it throws usage_error
  // Starts the program arguments[0]. If it cannot be started, that is an error whose message names the program, such as
  // ENOENT or EACCES; a directory that does not exist is ENOENT, too. A cancellation point, before anything is done.
  explicit process(const std::vector<std::string>& arguments, const process_options& o = {},
                   source where = source::current());
  process(const std::vector<std::string>& arguments, const process_options& o, std::error_code& why,
          source where = source::current());
  process(process&& other) noexcept;
  process& operator=(process&& other) noexcept;
  // Kills a child that has not ended (SIGKILL), and waits for that. So no child outlives its handle unless it was
  // detached, and none is left as a zombie. Never a cancellation point, but a suspension point.
  ~process();

  [[nodiscard]] pid_t id() const;  // for messages: after the end the number may belong to somebody else
  // The other ends of its pipes. They throw usage_error if that stream is no pipe.
  [[nodiscard]] pipe_writer& input();
  [[nodiscard]] pipe_reader& output();
  [[nodiscard]] pipe_reader& error();

  // Wait for the end. The status is kept: every later wait returns it again, and several tasks may wait. Always
  // cancellation points.
  exit_status wait(source where = source::current()) const;
  exit_status wait(std::error_code& why, source where = source::current()) const;
  // Return nothing if the time was up first.
  [[nodiscard]] std::optional<exit_status> wait_until(time_point when, source where = source::current()) const;
  template <class Rep, class Period>
  [[nodiscard]] std::optional<exit_status> wait_for(std::chrono::duration<Rep, Period> time,
                                                    source where = source::current()) const {
    return wait_until(detail::time_after(time), where);
  }
  [[nodiscard]] std::optional<exit_status> try_wait() const;
  // Arms of a select. The handler gets the status: child.on_exit([](weft::exit_status how) { … })
  [[nodiscard]] exit_arm exited() const;
  template <class F>
    requires std::invocable<F&, exit_status> || std::invocable<F&>
  [[nodiscard]] auto on_exit(F f) const {
    return detail::handled_arm(exited(), std::move(f));
  }

  // Sends a signal. It can reach nobody but this child, even if the child has ended and its number was given away.
  // Returns false if it is known to have ended. Never a cancellation point.
  bool kill(int signal_number = SIGKILL) const;
  bool kill(int signal_number, std::error_code& why) const;
  // Lets the child go on alone; this is empty afterwards. When it has ended, its status is taken the next time that a
  // process is started or detached, so a few zombies may be there meanwhile.
  void detach();

 private:
  [[nodiscard]] io::child& its_child() const;
  std::unique_ptr<io::child> child_;
  pipe_writer input_;
  pipe_reader output_, error_;
};

// What a child process has left behind.
struct process_result {
  exit_status status;
  std::string output, error;
};

// Starts a program, gives it `input`, and waits until it has ended and its outputs are closed. Both outputs are collected
// at the same time, unless the options lead them elsewhere. If the program does not read all of its input, that is no
// error. Who is cancelled, or has a time limit (with_timeout), kills the child. A cancellation point.
[[nodiscard]] WEFT_API process_result run_process(const std::vector<std::string>& arguments,
                                                  std::string_view input = {},
                                                  process_options o = {.output = redirect::pipe,
                                                                       .error = redirect::pipe},
                                                  std::source_location where = std::source_location::current());

// A program that was to succeed did not.
class WEFT_API process_failed : public std::runtime_error {
 public:
  process_failed(const std::string& program, process_result result);
  ~process_failed() override;
  [[nodiscard]] const process_result& result() const noexcept { return *result_; }

 private:
  std::shared_ptr<const process_result> result_;
};

// What the program writes to its standard output. Throws process_failed if it does not end with the code 0; the message
// has what it wrote to its standard error.
[[nodiscard]] WEFT_API std::string output_of(const std::vector<std::string>& arguments,
                                             std::source_location where = std::source_location::current());

}  // namespace weft::inline v1
