// The tasks that compute. There are as many as -p allows, each with a tool of its own, and they serve all files: jobs are
// taken in the order in which they were submitted, so that the oldest block of a file, which its writer waits for, is
// never behind a younger one.
//
// Rejected: a task for each block. The scheduler starts the youngest fresh task of a worker first, which is right for
// fork and join and wrong here: the writer would wait for the oldest while all blocks are in use.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include <weft/channel.hpp>
#include <weft/oneshot.hpp>
#include <weft/task_group.hpp>

#include <weftgz/deflate.hpp>

namespace weftgz {

class crew {
 public:
  explicit crew(std::size_t hands) : jobs_(weft::make_channel<std::unique_ptr<job>>(hands)) {
    for (std::size_t i = 0; i < hands; ++i)
      hands_.spawn({.name = "compute"}, [to_do = jobs_.in] {
        tool own;
        while (std::optional<std::unique_ptr<job>> j = to_do.recv()) (*j)->run(own);
      });
    jobs_.in.reset();
  }
  ~crew() { hands_.cancel(); }  // waits for jobs that are being computed, for none that is queued
  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;

  // f(tool&) is called by one of the crew; its result or its exception arrives at the end that is returned. A
  // cancellation point. What f needs belongs to f: it may be called after the submitter is gone.
  template <class F>
  [[nodiscard]] auto submit(F f) {
    using result = std::invoke_result_t<F&, tool&>;
    auto [out, in] = weft::make_oneshot<result>();
    (void)jobs_.out.send(std::make_unique<job_of<F, result>>(std::move(f), std::move(out)));
    return std::move(in);
  }

 private:
  struct job {
    virtual ~job() = default;
    virtual void run(tool& with) noexcept = 0;
  };
  template <class F, class R>
  struct job_of final : job {
    job_of(F g, weft::oneshot_writer<R> o) : f(std::move(g)), out(std::move(o)) {}
    void run(tool& with) noexcept override {
      try {
        (void)out.send(f(with));
      } catch (...) {
        out.close(std::current_exception());
      }
    }
    F f;
    weft::oneshot_writer<R> out;
  };

  weft::channel_ends<std::unique_ptr<job>> jobs_;
  weft::task_group hands_;
};

}  // namespace weftgz
