// What a runtime does about a deadlock: all tasks of the process wait, and nothing can wake one. runtime_options has a
// member of this type; docs/deadlock.md describes the report.
#pragma once

namespace weft::inline v1 {

enum class deadlock : unsigned char {
  report_and_exit,  // says on stderr who waits for what, and ends the process with the code 124
  report,  // says so and goes on; WEFT_DEADLOCK_ABORT=0 makes this of the one above
  off  // says nothing while this runtime has tasks
};

}  // namespace weft::inline v1
