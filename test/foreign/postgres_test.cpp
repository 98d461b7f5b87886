// libpq against a real server, through nothing but waits for its descriptor: examples/pq_connection.hpp.
// ctest: needs=PostgreSQL::PostgreSQL together
#include "pq_connection.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "foreign/postgres_server.hpp"
#include "io/net.hpp"

namespace {

using namespace support::usual;
using namespace support;
using testing::HasSubstr;

class Postgres : public testing::Test {
 protected:
  static void SetUpTestSuite() { server.emplace(); }
  static void TearDownTestSuite() { server.reset(); }
  static pq::connection connect() { return pq::connection(server->where()); }
  static std::string number(pq::connection& db, const char* sql, const std::vector<std::string>& parameters = {}) {
    return std::string(db.query(sql, parameters).at(0, 0));
  }
  // Runs f, which is to fail, and returns how.
  template <class F>
  static pq::error error_of(F&& f) {
    try {
      f();
    } catch (const pq::error& e) {
      return e;
    }
    ADD_FAILURE() << "no error";
    return pq::error("none");
  }
  static inline std::optional<postgres_server> server;
};

TEST_F(Postgres, answers_queries) {
  with_sockets([] {
    auto db = connect();
    EXPECT_EQ(db.query("select 6 * 7").at(0, 0), "42");
    const pq::result r = db.query("select $1::text, null union all select $2, 'b' order by 1", {"x", "y"});
    ASSERT_EQ(r.rows(), 2);
    EXPECT_EQ(r.at(0, 0), "x");
    EXPECT_TRUE(r.is_null(0, 1));
    EXPECT_EQ(r.at(1, 1), "b");
    EXPECT_EQ(db.query("create temporary table t(a int)").rows(), 0);
  });
}

// Sixty-four tasks, eight connections and one worker: eight queries are under way at a time, because whoever waits for
// the server parks only its task.
// req: IO-4
TEST_F(Postgres, queries_of_many_tasks_overlap_on_one_worker) {
  const std::size_t before = open_descriptors();
  {
    watched_runtime rt(1);
    rt->run([] {
      auto [give_back, take] = weft::make_channel<pq::connection>(8);
      for (int i = 0; i < 8; ++i) ASSERT_TRUE(give_back.send(connect()));
      int under_way = 0, most = 0, done = 0;  // of the tasks of one worker
      weft::with_scope([&](weft::scope& s) {
        for (int i = 0; i < 64; ++i)
          s.spawn([&, i] {
            pq::connection db = *take.recv();
            most = std::max(most, ++under_way);
            EXPECT_EQ(number(db, "select $1 from pg_sleep(0.05)", {std::to_string(i)}), std::to_string(i));
            --under_way;
            ++done;
            EXPECT_TRUE(give_back.send(std::move(db)));
          });
      });
      EXPECT_EQ(done, 64);
      EXPECT_EQ(most, 8);
    });
  }
  EXPECT_EQ(open_descriptors(), before);
}

// More than the buffers of the kernel hold, in both directions.
TEST_F(Postgres, large_parameters_and_results) {
  with_sockets([] {
    auto db = connect();
    const std::string much = pattern(3 << 20);
    EXPECT_EQ(db.query("select $1::text", {much}).at(0, 0), much);
    const pq::result r = db.query("select i, repeat('x', 300) from generate_series(1, 10000) i");
    ASSERT_EQ(r.rows(), 10'000);
    EXPECT_EQ(r.at(9'999, 0), "10000");
    EXPECT_EQ(r.at(9'999, 1).size(), 300u);
  });
}

TEST_F(Postgres, an_error_of_the_server_is_told_and_the_connection_lives) {
  with_sockets([] {
    auto db = connect();
    const pq::error e = error_of([&] { db.query("select 1 from nowhere"); });
    EXPECT_EQ(e.state, "42P01");
    EXPECT_THAT(e.what(), HasSubstr("relation \"nowhere\" does not exist"));
    EXPECT_TRUE(db.is_open());
    EXPECT_EQ(number(db, "select 1"), "1");
  });
}

TEST_F(Postgres, a_server_that_is_not_there_is_told) {
  with_sockets([] {
    const pq::error e = error_of([] { const pq::connection none("host=/nowhere"); });
    EXPECT_THAT(e.what(), HasSubstr("/nowhere/.s.PGSQL.5432"));
    EXPECT_THAT(error_of([] { const pq::connection none(server->where() + " dbname=nothing"); }).what(),
                HasSubstr("database \"nothing\" does not exist"));
    // libpq tries one after the other.
    pq::connection second("user=weft dbname=postgres host=/nowhere," + server->directory());
    EXPECT_EQ(number(second, "select 2"), "2");
  });
}

// req: IO-4
TEST_F(Postgres, a_notification_is_an_arm_of_a_select) {
  with_sockets([] {
    auto ears = connect();
    ears.query("listen news");
    auto [out, in] = weft::make_channel<int>();
    auto teller = weft::spawn([out = std::move(out)] {
      auto db = connect();
      for (int i = 0; i < 20; ++i) {
        db.query("select pg_notify('news', $1)", {std::to_string(i)});
        EXPECT_TRUE(out.send(i));
      }
    });
    int heard = 0, received = 0;
    while (heard < 20 || received < 20) {
      if (const auto n = ears.take_notification()) {
        EXPECT_EQ(n->channel, "news");
        EXPECT_EQ(n->text, std::to_string(heard++));
        continue;
      }
      auto limit = weft::after(20s);
      weft::select(ears.readable(), weft::when(received < 20, in.on_recv([&](int) { ++received; })),
                   limit.on_expire([] { FAIL() << "nothing came"; }));
      if (HasFatalFailure()) return;
    }
    teller.join();
  });
}

// How many backends are in the query with this mark, seen by another connection.
int busy_with(pq::connection& db, const std::string& mark) {
  const pq::result r = db.query(
      "select count(*) from pg_stat_activity where state = 'active' and pid <> pg_backend_pid() and query like $1",
      {"%" + mark + "%"});
  return std::stoi(std::string(r.at(0, 0)));
}

// The task unwinds at once, the server gives up, and no descriptor is left.
// req: IO-2 IO-4
TEST_F(Postgres, a_task_that_is_cancelled_in_a_query_leaves_nothing) {
  with_sockets([] {
    auto other = connect();
    auto task = weft::spawn([] {
      auto db = connect();
      db.query("select pg_sleep(3600) as cancelled");
    });
    until([&] { return busy_with(other, "as cancelled") == 1; });
    task.cancel();
    EXPECT_THROW(task.join(), weft::task_cancelled);
    until([&] { return busy_with(other, "as cancelled") == 0; });
  });
}

// req: IO-2
TEST_F(Postgres, a_deadline_ends_a_query) {
  with_sockets([] {
    auto db = connect();
    EXPECT_FALSE(weft::with_timeout(5ms, [&] { db.query("select pg_sleep(3600)"); }));
    EXPECT_FALSE(db.is_open());
    EXPECT_THAT(error_of([&] { db.query("select 1"); }).what(), HasSubstr("is closed"));
  });
}

// req: IO-4
TEST_F(Postgres, a_backend_that_is_killed_is_told) {
  with_sockets([] {
    auto killer = connect();
    auto victim = connect();
    const std::string id = number(victim, "select pg_backend_pid()");
    auto task = weft::spawn([&] { return error_of([&] { victim.query("select pg_sleep(3600) as killed"); }); });
    until([&] { return busy_with(killer, "as killed") == 1; });
    killer.query("select pg_terminate_backend($1)", {id});
    const pq::error e = task.join();
    EXPECT_EQ(e.state, "57P01");
    EXPECT_THAT(e.what(), HasSubstr("terminating connection due to administrator command"));
    EXPECT_FALSE(victim.is_open());
  });
}

// Nobody asks anything of the connection; its death is readable.
// req: IO-4
TEST_F(Postgres, the_death_of_an_idle_connection_is_an_arm) {
  with_sockets([] {
    auto killer = connect();
    auto ears = connect();
    ears.query("listen news");
    killer.query("select pg_terminate_backend($1)", {number(ears, "select pg_backend_pid()")});
    const pq::error e = error_of([&] {
      for (auto limit = weft::after(20s); weft::select(ears.readable(), limit).index() == 0;)
        EXPECT_FALSE(ears.take_notification());
    });
    EXPECT_THAT(e.what(), HasSubstr("server closed the connection"));
    EXPECT_FALSE(ears.is_open());
  });
}

}  // namespace
