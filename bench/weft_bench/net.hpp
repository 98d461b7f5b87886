// Servers over sockets, for bench/echo/run.py; bench/peers/README.md defines each bench. None of them returns.
#pragma once

#include "peer.hpp"

namespace weft_bench {

peer::Result tcp_echo(peer::u64 port);
peer::Result tcp_echo_512(peer::u64 port);  // with a smaller buffer on each task's stack
peer::Result tcp_echo_stuck(peer::u64 port);  // a message that begins with 's' blocks the thread of its handler
peer::Result tcp_echo_mixed(peer::u64 port);  // one that begins with 'c' computes for about 1 ms
peer::Result unix_echo(peer::u64 number);  // at the abstract name weft_echo.NUMBER
peer::Result udp_echo(peer::u64 port);  // one socket for all clients

}  // namespace weft_bench
