#include "channels.hpp"

#include <weft/weft.hpp>

#include <vector>

namespace weft_bench {

using namespace peer;

u64 pingpong(u64 n) {
  auto [ping_out, ping_in] = weft::make_channel<u64>();
  auto [pong_out, pong_in] = weft::make_channel<u64>();
  auto partner = weft::spawn([in = std::move(ping_in), out = std::move(pong_out)]() mutable {
    while (auto v = in.recv()) (void)out.send(*v + 1);
  });
  u64 v = 0;
  for (u64 i = 0; i < n; ++i) {
    (void)ping_out.send(v);
    v = *pong_in.recv();
  }
  ping_out.close();
  partner.join();
  check(v == n, "pingpong");
  return n;
}

u64 producers_consumers(u64 producers, u64 consumers, u64 n) {
  auto [out, in] = weft::make_channel<u64>(128);
  std::vector<weft::join_handle<void>> sending;
  std::vector<weft::join_handle<u64>> receiving;
  for (u64 p = 0; p < producers; ++p)
    sending.push_back(weft::spawn([=, to = out]() mutable {
      for (u64 i = p; i < n; i += producers) (void)to.send(i);
    }));
  out.reset();
  for (u64 c = 0; c < consumers; ++c)
    receiving.push_back(weft::spawn([from = in]() mutable {
      u64 sum = 0;
      while (auto v = from.recv()) sum += *v;
      return sum;
    }));
  for (auto& s : sending) s.join();
  u64 total = 0;
  for (auto& r : receiving) total += r.join();
  check(total == sum_to(n), "chan");
  return n;
}

u64 select_from(u64 capacity, u64 n) {
  std::vector<weft::reader<u64>> in;
  std::vector<weft::writer<u64>> open;  // as with the peers: a producer's end does not close its channel
  for (u64 p = 0; p < 4; ++p) {
    auto ends = weft::make_channel<u64>(capacity);
    in.push_back(std::move(ends.in));
    open.push_back(ends.out);
    weft::spawn([=, out = std::move(ends.out)]() mutable {
      for (u64 i = p; i < n; i += 4) (void)out.send(i);
    }).detach();
  }
  u64 sum = 0;
  u64 v = 0;
  for (u64 i = 0; i < n; ++i) {
    check(weft::alt(in[0] >> v, in[1] >> v, in[2] >> v, in[3] >> v).ok(), "select");
    sum += v;
  }
  check(sum == sum_to(n), "select");
  return n;
}

u64 ring(u64 n) {
  constexpr u64 tasks = 1000;
  auto [first, in] = weft::make_channel<u64>();
  for (u64 t = 0; t < tasks - 1; ++t) {
    auto next = weft::make_channel<u64>();
    weft::spawn([from = std::move(in), to = std::move(next.out)]() mutable {
      while (auto v = from.recv()) (void)to.send(*v + 1);
    }).detach();
    in = std::move(next.in);
  }
  u64 v = 0;
  for (u64 r = 0; r < n / tasks; ++r) {  // this task is the thousandth
    (void)first.send(v + 1);
    v = *in.recv();
  }
  check(v == n / tasks * tasks, "ring");
  return n;
}

namespace {

u64 nth_prime(u64 n) {
  auto ends = weft::make_channel<u64>();
  weft::spawn([out = std::move(ends.out)]() mutable {
    for (u64 i = 2; out.send(i); ++i) {}
  }).detach();
  weft::reader<u64> in = std::move(ends.in);
  u64 prime = 0;
  for (u64 k = 0; k < n; ++k) {
    prime = *in.recv();
    auto next = weft::make_channel<u64>();
    weft::spawn([from = std::move(in), to = std::move(next.out), prime]() mutable {
      while (auto i = from.recv())
        if (*i % prime != 0 && !to.send(*i)) return;
    }).detach();
    in = std::move(next.in);
  }
  return prime;
}

}  // namespace

Result prime_sieve(u64 n) {
  const u64 start = now_ns();
  const u64 prime = nth_prime(n);
  const u64 took = now_ns() - start;
  check(n != 2000 || prime == 17389, "prime_sieve");
  return {double(took) / 1e6};
}

}  // namespace weft_bench
