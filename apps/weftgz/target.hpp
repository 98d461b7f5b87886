// The file that is made. It has a name of its own until it is complete, so nobody ever finds a part under the right name,
// and a file that is replaced (-f) is there until the new one is. If the target goes without commit(), after an error or
// a signal, nothing is left of it.
#pragma once

#include <cstdint>
#include <string>

#include <sys/stat.h>

#include <weft/fs.hpp>

namespace weftgz {

class target {
 public:
  explicit target(std::string path);  // throws io_failure
  ~target();
  target(const target&) = delete;
  target& operator=(const target&) = delete;

  [[nodiscard]] weft::fs::file& file() noexcept { return file_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  // Gives it the mode, the owner and the times of the original, and then its name. `modified` is used instead of the
  // original's time unless it is 0. Returns false if there is a file of that name meanwhile, which is not replaced
  // without `force`. Throws io_failure.
  [[nodiscard]] bool commit(const struct stat& original, std::uint32_t modified, bool force);

 private:
  std::string path_, unfinished_;
  weft::fs::file file_;
};

[[nodiscard]] bool is_name_of_unfinished(std::string_view name) noexcept;

}  // namespace weftgz
