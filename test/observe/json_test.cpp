// The dump for programs can be parsed, whatever the tasks are called.
#include <cstdio>
#include <fstream>

#include "observe/looks.hpp"

namespace {

using namespace support::usual;
using namespace looks;

// What a small program in Python says of the dump, which it gets as `d`.
std::string asked_of_python(const std::string& json, const std::string& expression) {
  const std::string path = ::testing::TempDir() + "weft_dump_" + std::to_string(::getpid()) + ".json";
  std::ofstream(path) << json;
  const std::string call = "python3 -c 'import json,sys; d=json.load(open(sys.argv[1],encoding=\"utf-8\")); print(" +
                           expression + ")' " + path + " 2>&1";
  std::FILE* answer = ::popen(call.c_str(), "r");
  std::string text;
  for (int c = std::fgetc(answer); c != EOF; c = std::fgetc(answer)) text += static_cast<char>(c);
  ::pclose(answer);
  std::remove(path.c_str());
  return text;
}

// req: KC-8 CSP-14
TEST(Json, is_valid_and_complete) {
  const support::watchdog guard(110s);
  watched_runtime rt(2);
  rt->run([&] {
    weft::mutex m;
    m.lock();
    auto task = weft::spawn({.name = "waiter"}, [&] {
      m.lock();
      m.unlock();
    });
    until_parked(task);
    const std::string json = dump_of(rt, weft::dump_form::json);
    EXPECT_EQ(asked_of_python(json, "d[\"weft_dump\"], len(d[\"workers\"]), d[\"parked\"]"), "1 2 1\n");
    EXPECT_EQ(asked_of_python(json,
                              "[(t[\"name\"], t[\"state\"], t[\"exact\"], t[\"waits\"][0][\"kind\"]) for t in "
                              "d[\"tasks\"] if t[\"state\"] == \"waiting\"]"),
              "[('waiter', 'waiting', True, 'mutex')]\n");
    EXPECT_EQ(asked_of_python(json, "[(o[\"name\"], o[\"held_by\"]) for o in d[\"objects\"]]"),
              "[('mutex M1', " + std::to_string(weft::this_task::id()) + ")]\n");
    EXPECT_EQ(asked_of_python(json,
                              "any(\"json_test.cpp\" in f.get(\"file\", \"\") for t in d[\"tasks\"] if "
                              "t[\"name\"] == \"waiter\" for f in d[\"stacks\"][t[\"stack\"]])"),
              "True\n");
    m.unlock();
    task.join();
  });
}

TEST(Json, stays_valid_with_names_that_are_no_text) {
  const support::watchdog guard(110s);
  watched_runtime rt(2);
  rt->run([&] {
    weft::event stop;
    const std::string names[] = {
        "\"quoted\\\"",  "line\nbreak\t\x01", std::string(29, 'x') + "ä€",  // cut in the middle of the last character
        "\xff\xfe\x80",
        "\xed\xa0\x80",  // half of a pair of UTF-16
        "\xc0\xaf",  // longer than needed
        "<img onerror>",
    };
    std::vector<weft::join_handle<void>> tasks;
    for (const std::string& name : names) tasks.push_back(weft::spawn({.name = name}, [&] { stop.wait(); }));
    for (const auto& t : tasks) until_parked(t);
    const std::string json = dump_of(rt, weft::dump_form::json);
    EXPECT_EQ(asked_of_python(json, "len(d[\"tasks\"])"), std::to_string(std::size(names) + 1) + "\n");
    EXPECT_EQ(asked_of_python(json, "[ascii(t[\"name\"]) for t in d[\"tasks\"]][1:3]"),
              "['\\'\"quoted\\\\\\\\\"\\'', \"'line\\\\nbreak\\\\t\\\\x01'\"]\n");
    stop.set();
    for (auto& t : tasks) t.join();
  });
}

}  // namespace
