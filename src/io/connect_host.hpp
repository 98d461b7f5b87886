// Connecting to a host by its name, with the kernel's table as a parameter: the look-up (resolve.hpp), then the race of
// the addresses (connect_race.hpp).
#pragma once

#include <string_view>
#include <system_error>

#include "io/kernel.hpp"
#include <weft/detail/fd_handle.hpp>
#include <weft/net/connect_options.hpp>
#include <weft/net/resolve.hpp>

namespace weft::inline v1::io {

// Returns the connected socket. If there is none: sets `why` and returns an empty handle or, without `why`, throws a
// std::system_error whose message names the host, the port, and each address with its reason. A cancellation point.
[[nodiscard]] fd_handle connect_to_host(const kernel_calls& calls, std::string_view host, const net::service& port,
                                        const net::connect_options& o, const limit& l, std::error_code* why);

}  // namespace weft::inline v1::io
