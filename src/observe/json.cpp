// The dump for programs: one JSON object, described in docs/debugging.md. Whoever changes what a member means counts
// `weft_dump` up; new members may come at any time.
#include <cstdio>
#include <string_view>

#include "observe/dump.hpp"
#include "observe/objects.hpp"
#include "observe/symbols.hpp"
#include "observe/text.hpp"

namespace weft::inline v1::observe {
namespace {

// How many bytes the UTF-8 character at the front has; 0 if it is none. Names are cut at 31 bytes, so the last
// character may be incomplete, and a name may hold any bytes in the first place.
std::size_t length_of_character(std::string_view s) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char first = byte(0);
  const std::size_t n = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (n == 0 || n > s.size()) return 0;
  for (std::size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if (first == 0xe0 && byte(1) < 0xa0) return 0;  // longer than needed
  if (first == 0xed && byte(1) > 0x9f) return 0;  // half of a pair of UTF-16
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return n;
}

class emitter {
 public:
  void open(char bracket) {
    separate();
    text_ += bracket;
    is_first_ = true;
  }
  void close(char bracket) {
    text_ += bracket;
    is_first_ = false;
  }
  emitter& key(std::string_view name) {
    value(name);
    text_ += ':';
    is_first_ = true;
    return *this;
  }
  void value(std::string_view s) {
    separate();
    text_ += '"';
    while (!s.empty()) {
      const std::size_t n = length_of_character(s);
      if (n == 0)
        text_ += "\\ufffd";
      else if (n == 1)
        add_plain(s[0]);
      else
        text_ += s.substr(0, n);
      s.remove_prefix(n == 0 ? 1 : n);
    }
    text_ += '"';
  }
  void value(const char* s) { value(std::string_view(s)); }
  void value(bool b) {
    separate();
    text_ += b ? "true" : "false";
  }
  template <std::integral N>
  void value(N n) {
    separate();
    text_ += std::to_string(n);
  }
  void value(const void* address) {
    char hex[24];
    std::snprintf(hex, sizeof hex, "%p", address);
    value(std::string_view(hex));
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  void separate() {
    if (!is_first_) text_ += ',';
    is_first_ = false;
  }
  void add_plain(char c) {
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      text_ += escaped;
    } else {
      text_ += c;
    }
  }

  std::string text_;
  bool is_first_ = true;
};

const char* name_of(task_state s) noexcept {
  switch (s) {
    case task_state::ready: return "ready";
    case task_state::running: return "running";
    case task_state::blocking: return "blocking";
    case task_state::waiting: return "waiting";
    case task_state::ended: break;
  }
  return "ended";
}

const char* name_of(worker_view::doing d) noexcept {
  switch (d) {
    case worker_view::doing::runs: return "runs";
    case worker_view::doing::searches: return "searches";
    case worker_view::doing::sleeps: return "sleeps";
    case worker_view::doing::leaves: return "leaves";
    case worker_view::doing::gone: break;
  }
  return "gone";
}

void emit(emitter& e, const snapshot& s, const worker_view& w) {
  e.open('{');
  e.key("id").value(w.id);
  e.key("thread").value(w.thread_id);
  e.key("does").value(name_of(w.what));
  if (w.task != none) {
    e.key("task").value(s.tasks[w.task].id);
    e.key("for_ms").value(w.age.count());
    e.key("sleeps_in_kernel").value(w.sleeps_in_kernel());
  }
  e.close('}');
}

void emit(emitter& e, const snapshot& s, const task_view& t) {
  e.open('{');
  e.key("id").value(t.id);
  e.key("name").value(t.name);
  e.key("state").value(name_of(t.state));
  e.key("exact").value(t.is_exact);
  if (t.state == task_state::waiting && t.is_exact) {
    e.key("for_ms").value(t.age.count());
    e.key("waits");
    e.open('[');
    for (const wait_view& w : t.waits) {
      e.open('{');
      e.key("kind").value(w.kind->name);
      if (w.about != none) e.key("object").value(w.about);
      e.close('}');
    }
    e.close(']');
  }
  if (t.kind != nullptr && t.where.line() != 0) {
    e.key("where");
    e.open('{');
    e.key("file").value(t.where.file_name());
    e.key("line").value(t.where.line());
    e.key("function").value(t.where.function_name());
    e.close('}');
  }
  if (t.on_worker != none) e.key("worker").value(s.workers[t.on_worker].id);
  if (t.scope != nullptr) e.key("scope").value(t.scope);
  if (t.trace != none) e.key("stack").value(t.trace);
  e.close('}');
}

void emit(emitter& e, const snapshot& s, const object_view& o) {
  e.open('{');
  e.key("name").value(o.name);
  e.key("sort").value(sort_of(o.number).noun);
  e.key("address").value(o.address);
  if (!o.state.empty()) e.key("state").value(o.state);
  if (!o.place.empty()) e.key("place").value(o.place);
  if (o.holder != none) e.key("held_by").value(s.tasks[o.holder].id);
  if (o.held_outside) e.key("held_by_thread").value(true);
  e.key("waiters");
  e.open('[');
  for (const index i : o.waiters) e.value(s.tasks[i].id);
  e.close(']');
  e.close('}');
}

void emit(emitter& e, const stack_trace& frames) {
  e.open('[');
  for (const frame& f : frames)
    for (const symbol& found : symbols_of(f)) {
      e.open('{');
      e.key("pc").value(reinterpret_cast<const void*>(f.pc));
      e.key("function").value(found.function);
      if (!found.file.empty()) e.key("file").value(found.file);
      if (found.line != 0) e.key("line").value(found.line);
      if (found.is_inlined) e.key("inlined").value(true);
      if (f.is_guess) e.key("guess").value(true);
      if (is_weft_internal(found)) e.key("weft").value(true);
      e.close('}');
    }
  e.close(']');
}

template <class Each>
void emit_list(emitter& e, const char* name, const auto& all, Each each) {
  e.key(name);
  e.open('[');
  for (const auto& one : all) each(one);
  e.close(']');
}

}  // namespace

std::string json_text(const snapshot& s) {
  emitter e;
  e.open('{');
  e.key("weft_dump").value(1);
  e.key("took_us").value(s.took.count());
  e.key("running").value(s.running);
  e.key("runnable").value(s.runnable);
  e.key("parked").value(s.parked);
  emit_list(e, "workers", s.workers, [&](const worker_view& w) { emit(e, s, w); });
  emit_list(e, "tasks", s.tasks, [&](const task_view& t) { emit(e, s, t); });
  emit_list(e, "objects", s.objects, [&](const object_view& o) { emit(e, s, o); });
  emit_list(e, "stacks", s.traces, [&](const stack_trace& t) { emit(e, t); });
  e.close('}');
  return e.take() + "\n";
}

}  // namespace weft::inline v1::observe
