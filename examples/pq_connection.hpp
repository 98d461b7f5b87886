// libpq on Weft: its functions that never wait, and Weft's waits between them. So a query parks its task, and the worker
// goes on with others.
//
//   pq::connection db("host=/run/postgresql dbname=shop");
//   for (const pq::result r = db.query("select name from goods where price < $1", {"10"}); …
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weft/descriptor.hpp>
#include <weft/weft.hpp>

namespace pq {

// What the server or the connection complains of. `state` is the SQLSTATE, and empty if the connection is lost.
struct error : std::runtime_error {
  error(const std::string& what, std::string sql_state = {}) : std::runtime_error(what), state(std::move(sql_state)) {}
  std::string state;
};

struct notification {
  std::string channel, text;
};

class result {
 public:
  explicit result(PGresult* r) noexcept : result_(r, PQclear) {}
  [[nodiscard]] int rows() const noexcept { return PQntuples(result_.get()); }
  [[nodiscard]] std::string_view at(int row, int column) const noexcept {
    return {PQgetvalue(result_.get(), row, column), static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
  }
  [[nodiscard]] bool is_null(int row, int column) const noexcept {
    return PQgetisnull(result_.get(), row, column) != 0;
  }
  [[nodiscard]] bool is_failure() const noexcept {
    const ExecStatusType status = PQresultStatus(result_.get());
    return status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE;
  }
  [[nodiscard]] error failure() const {
    const char* state = PQresultErrorField(result_.get(), PG_DIAG_SQLSTATE);
    return {PQresultErrorMessage(result_.get()), state != nullptr ? state : ""};
  }

 private:
  std::unique_ptr<PGresult, void (*)(PGresult*)> result_;
};

// One task at a time uses a connection; several share a pool of them.
class connection {
 public:
  // A cancellation point, as are all functions here that may wait. What is not in `where` comes from the environment.
  explicit connection(const std::string& where = "") : connection_(nullptr, PQfinish) {
    // libpq looks up names and computes proofs of passwords here, both of which may take long.
    connection_.reset(weft::blocking([&] { return PQconnectStart(where.c_str()); }));
    if (connection_ == nullptr) throw std::bad_alloc();
    // The number is asked for each time: while it connects, libpq may close its socket and try another.
    for (auto next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK;) {
      if (next == PGRES_POLLING_FAILED || PQstatus(raw()) == CONNECTION_BAD) throw lost();
      if (next == PGRES_POLLING_READING)
        weft::wait_readable(PQsocket(raw()));
      else
        weft::wait_writable(PQsocket(raw()));
      next = weft::blocking([&] { return PQconnectPoll(raw()); });
    }
    PQsetnonblocking(raw(), 1);
    socket_ = weft::descriptor::borrow(PQsocket(raw()));
  }
  connection(connection&&) noexcept = default;
  // By exchange, so that the descriptor always ends before libpq closes it.
  connection& operator=(connection other) noexcept {
    std::swap(connection_, other.connection_);
    std::swap(socket_, other.socket_);
    return *this;
  }

  // Throws pq::error with the message of the server, and the connection can be used again then. If the task is cancelled
  // meanwhile, or the connection is lost, it is closed, and the server is told to give up.
  result query(const char* sql, const std::vector<std::string>& parameters = {}) {
    require_open();
    std::vector<const char*> values;
    for (const std::string& p : parameters) values.push_back(p.c_str());
    given_up_unless_done guard(*this);
    if (PQsendQueryParams(raw(), sql, static_cast<int>(values.size()), nullptr, values.data(), nullptr, nullptr, 0) ==
        0)
      throw lost();
    send();
    result got = receive();
    guard.is_done = PQstatus(raw()) == CONNECTION_OK;
    if (got.is_failure()) throw got.failure();
    return got;
  }

  // An arm of a select, for a connection that has sent LISTEN: when it wins, take_notification() may have something.
  [[nodiscard]] weft::net::ready_arm readable() const { return socket_.readable(); }
  [[nodiscard]] std::optional<notification> take_notification() {
    require_open();
    if (PQconsumeInput(raw()) == 0) {
      const error why = lost();
      close();
      throw why;
    }
    const std::unique_ptr<PGnotify, void (*)(void*)> n(PQnotifies(raw()), PQfreemem);
    if (n == nullptr) return std::nullopt;
    return notification{n->relname, n->extra};
  }

  [[nodiscard]] bool is_open() const noexcept { return connection_ != nullptr; }
  void close() noexcept {
    socket_ = {};
    connection_.reset();
  }

 private:
  struct given_up_unless_done {
    explicit given_up_unless_done(connection& c) noexcept : of(c) {}
    ~given_up_unless_done() {
      if (!is_done) of.give_up();
    }
    connection& of;
    bool is_done = false;
  };

  [[nodiscard]] PGconn* raw() const noexcept { return connection_.get(); }
  [[nodiscard]] error lost() const { return error(PQerrorMessage(raw())); }
  void require_open() const {
    if (!is_open()) throw error("the connection is closed");
  }

  // A server that cannot take more may itself wait until its answer is read.
  void send() {
    for (;;) {
      const int left = PQflush(raw());
      if (left == 0) return;
      if (left < 0) throw lost();
      if (weft::select(socket_.readable(), socket_.writable()).index() == 0 && PQconsumeInput(raw()) == 0) throw lost();
    }
  }
  // The first failure, which says more than those that follow from it, or else the last result.
  [[nodiscard]] result receive() {
    result got(PQmakeEmptyPGresult(raw(), PGRES_COMMAND_OK));
    for (;;) {
      while (PQisBusy(raw()) != 0) {
        socket_.wait_readable();
        if (PQconsumeInput(raw()) != 0) continue;
        if (got.is_failure()) return got;  // the server has said why it closes the connection
        throw lost();
      }
      PGresult* const next = PQgetResult(raw());
      if (next == nullptr) return got;
      result last(next);
      if (!got.is_failure()) got = std::move(last);
    }
  }
  // PQcancel() makes a connection of its own and waits for it, so it must not hold up a worker.
  void give_up() noexcept {
    if (PQstatus(raw()) == CONNECTION_OK) {
      const std::unique_ptr<PGcancel, void (*)(PGcancel*)> order(PQgetCancel(raw()), PQfreeCancel);
      const weft::this_task::shield held;  // also of a task that is cancelled
      char why[256];
      weft::blocking([&] { (void)PQcancel(order.get(), why, sizeof why); });
    }
    close();
  }

  std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
  weft::descriptor socket_;  // after the connection, so that it ends before libpq closes it
};

}  // namespace pq
