#include <weft/detail/same_sanitizer.hpp>

namespace weft::inline v1::detail {

#if defined(WEFT_UNDER_ASAN)
const char this_weft_was_built_without_address_sanitizer = 0;
#elif defined(WEFT_UNDER_TSAN)
const char this_weft_was_built_without_thread_sanitizer = 0;
#endif

}  // namespace weft::inline v1::detail
