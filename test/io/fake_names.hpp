// A name server inside of the test: what it answers, when it answers, and how often it was asked. It takes the place of
// getaddrinfo in the kernel's table; numeric hosts go to libc, which asks nobody for them.
#pragma once

#include <netdb.h>
#include <time.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/atomic.hpp"
#include "io/kernel.hpp"

namespace io_test {

//   nx.test, again.test, fail.test, empty.test   the codes EAI_NONAME, EAI_AGAIN, EAI_FAIL, EAI_NODATA
//   broken.test                                  EAI_SYSTEM, with errno EIO
//   two.test                                     2001:db8::1, 192.0.2.1, and the first once more
//   N.test                                       10.0.<N / 256>.<N % 256>
//   others                                       as know() has said
class fake_names {
 public:
  // A new name server answers at once.
  fake_names() {
    state().reset();
    kernel_ = weft::io::real_kernel();
    kernel_.getaddrinfo = &fake_names::ask;
    kernel_.freeaddrinfo = [](addrinfo* list) noexcept {
      state().out.fetch_sub(1);
      ::freeaddrinfo(list);
    };
  }
  fake_names(const fake_names&) = delete;
  fake_names& operator=(const fake_names&) = delete;

  [[nodiscard]] const weft::io::kernel_calls& kernel() const { return kernel_; }
  // The host has these numeric addresses. Called before anybody asks.
  static void know(const std::string& host, std::vector<std::string> addresses) {
    state().known[host] = std::move(addresses);
  }
  // From now on nobody gets an answer until open().
  static void close() { state().closed = true; }
  static void open() { state().closed = false; }
  [[nodiscard]] static int asked() { return state().asked.load(); }  // for names
  [[nodiscard]] static int asked_numeric() { return state().numeric.load(); }
  [[nodiscard]] static int inside() { return state().inside.load(); }  // who waits for an answer
  [[nodiscard]] static int most_inside() { return state().most.load(); }
  [[nodiscard]] static int lists_out() { return state().out.load(); }  // that were given and not freed

 private:
  struct counts {
    weft::base::atomic<bool> closed{false};
    weft::base::atomic<int> asked{0}, numeric{0}, inside{0}, most{0}, out{0};
    std::map<std::string, std::vector<std::string>> known;
    void reset() {
      known.clear();
      closed = false;
      for (auto* c : {&asked, &numeric, &inside, &most, &out}) *c = 0;
    }
  };
  static counts& state() {
    static counts only;
    return only;
  }

  static int numeric(const char* host, const char* service, const addrinfo* hints, addrinfo** found) noexcept {
    addrinfo asked = *hints;
    asked.ai_flags = (asked.ai_flags & AI_PASSIVE) | AI_NUMERICHOST;
    return ::getaddrinfo(host, service, &asked, found);
  }
  static int ask(const char* host, const char* service, const addrinfo* hints, addrinfo** found) noexcept {
    counts& s = state();
    int code = 0;
    if ((hints->ai_flags & AI_NUMERICHOST) != 0) {
      s.numeric.fetch_add(1);
      code = ::getaddrinfo(host, service, hints, found);
    } else {
      s.asked.fetch_add(1);
      const int now = s.inside.fetch_add(1) + 1;
      for (int seen = s.most.load(); now > seen && !s.most.compare_exchange_weak(seen, now);) {}
      constexpr timespec nap{0, 100'000};
      while (s.closed.load()) ::nanosleep(&nap, nullptr);
      code = answer(host == nullptr ? "" : host, service, hints, found);
      s.inside.fetch_sub(1);
    }
    if (code == 0) s.out.fetch_add(1);
    return code;
  }
  static int answer(const std::string& host, const char* service, const addrinfo* hints, addrinfo** found) noexcept {
    if (host == "nx.test") return EAI_NONAME;
    if (host == "again.test") return EAI_AGAIN;
    if (host == "fail.test") return EAI_FAIL;
    if (host == "empty.test") return EAI_NODATA;
    if (host == "broken.test") {
      errno = EIO;
      return EAI_SYSTEM;
    }
    if (host == "two.test") {
      addrinfo* second = nullptr;
      addrinfo* third = nullptr;
      const int code = numeric("2001:db8::1", service, hints, found) | numeric("192.0.2.1", service, hints, &second) |
                       numeric("2001:db8::1", service, hints, &third);
      (*found)->ai_next = second;  // each element of a list is freed for itself
      second->ai_next = third;
      return code;
    }
    if (const auto known = state().known.find(host); known != state().known.end()) {
      addrinfo** end = found;
      int code = 0;
      for (const std::string& address : known->second) {
        code |= numeric(address.c_str(), service, hints, end);
        end = &(*end)->ai_next;
      }
      return code;
    }
    const int n = std::atoi(host.c_str());
    const std::string address = "10.0." + std::to_string(n / 256) + '.' + std::to_string(n % 256);
    return numeric(address.c_str(), service, hints, found);
  }

  weft::io::kernel_calls kernel_ = {};
};

}  // namespace io_test
