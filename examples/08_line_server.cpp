// A store of keys and values behind a protocol of lines: "set KEY VALUE", "get KEY".
#include <weft/net.hpp>
#include <weft/text.hpp>
#include <weft/weft.hpp>

#include <cstdio>
#include <map>
#include <string>

namespace net = weft::net;

namespace {

class store {
 public:
  std::string answer(std::string_view request) {
    const std::string_view verb = word(request), key = word(request);
    const std::lock_guard guard(mutex_);
    if (verb == "set") return values_[std::string(key)] = request, "ok\n";
    if (const auto at = values_.find(key); verb == "get" && at != values_.end()) return at->second + "\n";
    return verb == "get" ? "nothing\n" : "what?\n";
  }

 private:
  static std::string_view word(std::string_view& of) {
    const std::string_view first = of.substr(0, of.find(' '));
    of.remove_prefix(std::min(of.size(), first.size() + 1));
    return first;
  }
  weft::mutex mutex_;
  std::map<std::string, std::string, std::less<>> values_;
};

void talk(net::tcp_stream s, store& data) {
  s.expires_after(std::chrono::seconds(30));  // a client that says nothing for so long is gone
  weft::buffered_reader in(s, {.longest = 1000});
  weft::buffered_writer out(s);
  while (const auto request = in.read_line()) {
    out.write(data.answer(*request));
    if (in.buffered().empty()) out.flush();  // one send answers all the requests that came together
  }
}

}  // namespace

int main() {
  return weft::run([] {
    store data;
    net::tcp_listener listener(net::endpoint::loopback(0));
    weft::with_scope([&](weft::scope& s) {
      s.spawn([&] { net::serve(listener, s, [&](net::tcp_stream c) { talk(std::move(c), data); }); });

      const auto client = net::tcp_stream::connect(listener.local_endpoint());
      client.write_all("set colour dark blue\r\nget colour\r\nget shape\r\nhello\r\n");
      client.shutdown(net::half::write);
      for (const std::string_view line : weft::lines(client)) std::printf("%.*s\n", int(line.size()), line.data());
      listener.close();
    });
  });
}
