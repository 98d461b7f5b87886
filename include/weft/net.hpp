// Networking: everything in weft/net, and waiting for any descriptor. Not part of <weft/weft.hpp>.
#pragma once

#include <weft/descriptor.hpp>
#include <weft/net/endpoint.hpp>
#include <weft/net/options.hpp>
#include <weft/net/resolve.hpp>
#include <weft/net/send_file.hpp>
#include <weft/net/serve.hpp>
#include <weft/net/server.hpp>
#include <weft/net/tcp.hpp>
#include <weft/net/udp.hpp>
#include <weft/net/unix.hpp>
#include <weft/net/unix_datagram.hpp>
