// A snapshot as text.
#pragma once

#include <string>

#include "observe/snapshot.hpp"
#include <weft/observe.hpp>

namespace weft::inline v1::observe {

[[nodiscard]] std::string groups_text(const snapshot& s);
[[nodiscard]] std::string tasks_text(const snapshot& s);
[[nodiscard]] std::string tree_text(const snapshot& s);
[[nodiscard]] std::string json_text(const snapshot& s);

[[nodiscard]] std::string dump_text(sched::scheduler& of, dump_form form);

}  // namespace weft::inline v1::observe
