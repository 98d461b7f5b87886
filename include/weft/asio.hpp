// Boost.Asio, Boost.Beast and asio::ssl on Weft's streams, unchanged, in blocking style. The optional component
// weft::asio, which needs Boost 1.81 and OpenSSL 3:
//
//   find_package(weft REQUIRED COMPONENTS asio)
//   target_link_libraries(program PRIVATE weft::asio)
//
//   weft::asio_stream stream(weft::net::tcp_stream::connect(server));
//   beast::http::write(stream, request);
//   beast::http::read(stream, buffer, response);
//
// For TLS there are two ways: asio::ssl::stream<weft::asio_stream<weft::net::tcp_stream>>, as everywhere with Asio, for
// one task at a time; or weft::tls_stream, which one reading and one writing task may use at the same time, and
// weft::asio_stream<weft::tls_stream<weft::net::tcp_stream>> for Beast on it.
//
// Only synchronous functions work: nobody runs the context behind the executor, so Beast's own timers never fire, either.
// TLS and HTTP together need about 20 KiB of stack; tasks have more unless told otherwise.
#pragma once

#include <weft/asio/error.hpp>
#include <weft/asio/stream.hpp>
#include <weft/tls.hpp>
