// libcurl on Weft: one task drives a multi handle, and any number of tasks ask it for documents.
//
//   weft::with_scope([](weft::scope& s) {
//     const http::client client(s);
//     std::string page = client.get("http://example.org/").body;
//   });
//
// libcurl says which descriptors it wants to have watched and when it wants to be called at the latest. The driving task
// selects over all of that, over new requests, and over the askers that have gone away.
#pragma once

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <weft/descriptor.hpp>
#include <weft/weft.hpp>

namespace http {

struct reply {
  long status = 0;
  std::string body;
};

struct error : std::runtime_error {
  error(CURLcode c, const std::string& what) : std::runtime_error(what), code(c) {}
  CURLcode code;
};

struct options {
  std::chrono::milliseconds timeout{30'000};  // of the whole transfer
};

namespace detail {

// How a transfer has ended: the reply, or an error.
struct outcome {
  CURLcode code = CURLE_OK;
  std::string why;
  http::reply reply;
};

struct request {
  std::string url;
  options how;
  weft::oneshot_writer<outcome> answer;
};

// A request that libcurl works on.
class transfer {
 public:
  transfer(request what, CURLM* in)
      : answer(std::move(what.answer)),
        is_given_up(~answer),
        easy(curl_easy_init()),
        multi_(in) {
    if (easy == nullptr) throw std::bad_alloc();
    curl_easy_setopt(easy, CURLOPT_URL, what.url.c_str());
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(what.how.timeout.count()));
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, message);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);  // signals and many threads do not go together
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &got.reply.body);
    curl_easy_setopt(
        easy, CURLOPT_WRITEFUNCTION, +[](char* from, std::size_t, std::size_t size, void* to) noexcept {
          static_cast<std::string*>(to)->append(from, size);
          return size;
        });
    curl_multi_add_handle(multi_, easy);
  }
  ~transfer() {
    curl_multi_remove_handle(multi_, easy);
    curl_easy_cleanup(easy);
  }
  transfer(const transfer&) = delete;
  transfer& operator=(const transfer&) = delete;

  void finish(CURLcode code) {
    got.code = code;
    if (code != CURLE_OK) got.why = message[0] != '\0' ? message : curl_easy_strerror(code);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &got.reply.status);
    (void)answer.send(std::move(got));  // if the asker has gone meanwhile, nobody wants it
  }

  weft::oneshot_writer<outcome> answer;
  decltype(~answer) is_given_up;  // an arm: the asker was cancelled, and waits no more
  CURL* easy;

 private:
  CURLM* multi_;
  outcome got;
  char message[CURL_ERROR_SIZE] = {};
};

// A descriptor of libcurl's, and what it wants to know of it.
struct socket {
  explicit socket(int fd)
      : descriptor(weft::descriptor::borrow(fd)),
        readable(descriptor.readable()),
        writable(descriptor.writable()) {}
  weft::descriptor descriptor;
  weft::net::ready_arm readable, writable;
  int wanted = 0;  // CURL_POLL_IN, CURL_POLL_OUT or both
};

class driver {
 public:
  explicit driver(weft::reader<request> requests)
      : requests_(std::move(requests)),
        multi_(curl_multi_init(), curl_multi_cleanup) {
    if (multi_ == nullptr) throw std::bad_alloc();
    curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETFUNCTION, &driver::on_socket);
    curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_.get(), CURLMOPT_TIMERFUNCTION, &driver::on_timer);
    curl_multi_setopt(multi_.get(), CURLMOPT_TIMERDATA, this);
  }
  driver(const driver&) = delete;
  driver& operator=(const driver&) = delete;

  // Returns when nobody can ask any more and everything is answered.
  void run() {
    while (requests_ || !transfers_.empty()) {
      wait_for_something();
      answer_those_that_are_done();
    }
  }

 private:
  void wait_for_something() {
    std::optional<request> next;
    auto asked = requests_.on_recv([&](std::optional<request> r) { next = std::move(r); });
    std::vector<weft::select_arm*> arms;
    std::vector<std::function<void()>> then;
    const auto either = [&](weft::select_arm& arm, std::function<void()> f) {
      arms.push_back(&arm);
      then.push_back(std::move(f));
    };
    either(asked, [&] { next ? begin(std::move(*next)) : requests_.reset(); });
    either(alarm_, [&] {
      alarm_.restart(weft::timer::clock::time_point::max());
      act(CURL_SOCKET_TIMEOUT, 0);
    });
    for (auto& [easy, t] : transfers_) either(t->is_given_up, [this, key = easy] { transfers_.erase(key); });
    for (auto& [fd, s] : sockets_) {
      if ((s.wanted & CURL_POLL_IN) != 0) either(s.readable, [this, fd = fd] { act(fd, CURL_CSELECT_IN); });
      if ((s.wanted & CURL_POLL_OUT) != 0) either(s.writable, [this, fd = fd] { act(fd, CURL_CSELECT_OUT); });
    }
    // What is to be done comes after the select, because libcurl may take away descriptors whose arms took part.
    then[weft::select(arms).index()]();
  }

  void begin(request what) {
    auto t = std::make_unique<transfer>(std::move(what), multi_.get());
    CURL* const easy = t->easy;
    transfers_.emplace(easy, std::move(t));
  }
  void act(curl_socket_t fd, int events) {
    int running = 0;
    curl_multi_socket_action(multi_.get(), fd, events, &running);
  }
  void answer_those_that_are_done() {
    int left = 0;
    while (const CURLMsg* m = curl_multi_info_read(multi_.get(), &left)) {
      if (m->msg != CURLMSG_DONE) continue;
      const auto found = transfers_.find(m->easy_handle);
      found->second->finish(m->data.result);  // `m` is gone with the transfer
      transfers_.erase(found);
    }
  }

  // libcurl calls these two from within its own functions. It closes a descriptor right after it has said REMOVE, so the
  // descriptor ends here and not later.
  static int on_socket(CURL*, curl_socket_t fd, int what, void* self, void*) noexcept {
    auto& sockets = static_cast<driver*>(self)->sockets_;
    if (what == CURL_POLL_REMOVE)
      sockets.erase(fd);
    else
      sockets.try_emplace(fd, fd).first->second.wanted = what;
    return 0;
  }
  static int on_timer(CURLM*, long ms, void* self) noexcept {
    auto& alarm = static_cast<driver*>(self)->alarm_;
    if (ms < 0)
      alarm.restart(weft::timer::clock::time_point::max());
    else
      alarm.restart(std::chrono::milliseconds(ms));
    return 0;
  }

  weft::reader<request> requests_;  // empty when nobody can ask any more
  weft::timer alarm_{weft::timer::clock::time_point::max()};
  std::map<curl_socket_t, socket> sockets_;
  // After what its callbacks use, and before what it works on.
  std::unique_ptr<CURLM, CURLMcode (*)(CURLM*)> multi_;
  std::map<CURL*, std::unique_ptr<transfer>> transfers_;
};

}  // namespace detail

// Copies share the driving task, which belongs to the scope and ends when the last of them is gone.
class client {
 public:
  explicit client(weft::scope& in) {
    static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (initialized != CURLE_OK) throw error(initialized, curl_easy_strerror(initialized));
    auto [out, requests] = weft::make_channel<detail::request>();
    requests_ = std::move(out);
    in.spawn([from = std::move(requests)]() mutable { detail::driver(std::move(from)).run(); });
  }

  // Throws http::error. A cancellation point: the transfer of a task that is cancelled is given up.
  [[nodiscard]] reply get(std::string url, const options& how = {}) const {
    auto [out, answer] = weft::make_oneshot<detail::outcome>();
    if (!requests_.send({std::move(url), how, std::move(out)})) throw error(CURLE_FAILED_INIT, "the client has ended");
    std::optional<detail::outcome> got = answer.recv();
    if (!got) throw error(CURLE_ABORTED_BY_CALLBACK, "the client has ended");
    if (got->code != CURLE_OK) throw error(got->code, got->why);
    return std::move(got->reply);
  }

 private:
  weft::writer<detail::request> requests_;
};

}  // namespace http
