#include <weft/net/server.hpp>

#include "io/roster.hpp"
#include <weft/errors.hpp>

namespace weft::inline v1::net {

server::server(const server_options& o, source where)
    : roster_(new detail::roster(o.max_connections)),
      handlers_(where) {}
server::server(runtime& in, const server_options& o, source where)
    : roster_(new detail::roster(o.max_connections)),
      handlers_(in, where) {}

server::~server() {
  close_doors();
  handlers_.cancel();  // says that it is intended; the destructor of the group waits
}

void server::open(std::unique_ptr<detail::door> d) {
  if (!accepts_) throw usage_error("server::serve was called after the server has stopped accepting");
  detail::door& opened = *doors_.emplace_back(std::move(d));
  opened.acceptor =
      handlers_
          .spawn([this, &opened, present = detail::acceptor_presence(*roster_)] {
            try {
              opened.accept_until_closed();
            } catch (const cancelled&) {  // by close_doors(), by a handler that has failed, or with the owner
              throw;
            } catch (...) {
              failed_.set();
              throw;
            }
          })
          .ref();
}

// The acceptor may wait for a place, or because descriptors have run out. The end of its listener does not end that.
void server::close_doors() noexcept {
  accepts_ = false;
  for (const auto& d : doors_) {
    d->close();
    if (d->acceptor) d->acceptor.cancel();  // none if its spawn has failed
  }
}

void server::stop_accepting() {
  if (!accepts_) return;
  struct closing {
    server& of;
    ~closing() { of.close_doors(); }  // also if the owner is cancelled meanwhile
  } const at_the_end{*this};
  for (const auto& d : doors_) d->accept_waiting();
}

drain_report server::drain_until(std::chrono::steady_clock::time_point when, std::chrono::nanoseconds grace,
                                 source where) {
  roster_->count_ends();
  draining_.set();
  stop_accepting();
  roster_->close();
  if (!roster_->all_gone().wait_until(when, where)) {
    handlers_.cancel();
    (void)roster_->all_gone().wait_until(weft::detail::time_after(grace), where);
  }
  drain_report r = roster_->report();
  if (roster_->all_gone().is_set()) handlers_.join(where);  // what is left of their tasks ends by itself
  return r;
}

bool server::next_request(const socket_stream& s, source where) {
  // In this order, because what has arrived is to be served.
  return weft::detail::select_call<waits::preference::in_order>(where, s.readable(), draining_.on_set()).index() == 0;
}

std::size_t server::connections() const noexcept { return roster_->connections(); }

}  // namespace weft::inline v1::net
