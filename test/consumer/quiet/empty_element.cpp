// An empty struct through a channel: there is no byte of it to copy.
#include <weft/weft.hpp>

#include <chrono>
#include <optional>

struct done {};

done make_done() { return {}; }

bool send_made() {
  auto [out, in] = weft::make_channel<done>(weft::unlimited);
  const auto make = [] { return done{}; };
  bool all = true;
  for (int i = 0; i < 3; ++i) all = out.send(make()) && out.send(make_done()) && out.send({}) && all;
  return all;
}

bool send_in_every_way(const weft::writer<done>& out, std::optional<done> maybe) {
  const auto make = [] { return done{}; };
  const bool at_once = static_cast<bool>(out.try_send(make())) && static_cast<bool>(out.try_send(*maybe));
  return at_once && static_cast<bool>(out.send_for(make(), std::chrono::seconds(1)));
}

bool select_in_every_way(const weft::writer<done>& out, const weft::reader<done>& in) {
  const auto make = [] { return done{}; };
  done d;
  return weft::select(out << make(), out << d, in >> d).ok() &&
         weft::select(out.on_send(make(), [] {}), weft::when(true, out << make())).ok();
}

bool receive_in_every_way(const weft::reader<done>& in) {
  for (done d : in) (void)d;
  return in.try_recv().has_value() || in.recv().has_value();
}
