// Where bytes come from and where they go: files, standard streams, nowhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <weft/fs.hpp>
#include <weft/stdio.hpp>

#include <weftgz/buffer.hpp>
#include <weftgz/progress.hpp>

namespace weftgz {

struct source {
  virtual ~source() = default;
  virtual std::size_t read_some(room to) = 0;  // 0 at the end. Throws io_failure.
  // As much as there is room for, less only at the end.
  std::size_t fill(room to) {
    std::size_t n = 0;
    while (n < to.size()) {
      const std::size_t more = read_some(to.subspan(n));
      if (more == 0) break;
      n += more;
    }
    return n;
  }
};

struct sink {
  virtual ~sink() = default;
  virtual void write(bytes from) = 0;  // throws io_failure
};

class file_source final : public source {
 public:
  file_source(const weft::fs::file& f, std::string name, counters& c)
      : reader_(f),
        name_(std::move(name)),
        counters_(c) {}
  std::size_t read_some(room to) override;

 private:
  weft::fs::reader reader_;
  std::string name_;
  counters& counters_;
};

class standard_input final : public source {
 public:
  explicit standard_input(counters& c) : counters_(c) {}
  std::size_t read_some(room to) override;

 private:
  weft::input_stream in_ = weft::stdin_stream();
  counters& counters_;
};

class file_sink final : public sink {
 public:
  file_sink(weft::fs::file& f, std::string name, counters& c) : writer_(f), name_(std::move(name)), counters_(c) {}
  void write(bytes from) override;

 private:
  weft::fs::writer writer_;
  std::string name_;
  counters& counters_;
};

class standard_output final : public sink {
 public:
  explicit standard_output(counters& c) : counters_(c) {}
  void write(bytes from) override;

 private:
  weft::output_stream out_ = weft::stdout_stream();
  counters& counters_;
};

// For -t and -l.
class no_sink final : public sink {
 public:
  explicit no_sink(counters& c) : counters_(c) {}
  void write(bytes from) override { counters_.wrote(from.size()); }

 private:
  counters& counters_;
};

}  // namespace weftgz
