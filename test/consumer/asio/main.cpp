#include <weft/asio.hpp>
#include <weft/net.hpp>
#include <weft/weft.hpp>

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <string>
#include <utility>

// Built against an installed Weft, with what its component asio brings.
int main() {
  std::string got(5, ' ');
  const int status = weft::run([&] {
    auto [a, b] = weft::net::unix_stream::pair();
    weft::asio_stream from(std::move(a));
    weft::asio_stream to(std::move(b));
    boost::asio::write(from, boost::asio::buffer(std::string("hello")));
    boost::asio::read(to, boost::asio::buffer(got));
    (void)weft::tls_context::client();  // OpenSSL is linked, too
  });
  return status == 0 && got == "hello" ? 0 : 1;
}
