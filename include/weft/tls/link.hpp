// A TLS engine and its transport: who waits for what.
//
// One task may read while another writes. No lock of the engine is held while one of them waits for the transport; two
// turns keep the bytes on the wire in order instead. Whoever reads ciphertext and feeds it has the turn `reading_`, and
// whoever takes ciphertext out of the engine and writes it has the turn `writing_`. What was taken out and is not written
// yet stays in `out_`, also when its writer fails or is cancelled, so the next one goes on in the middle of the record.
//
// A reader may find that something has to be sent: an alert, or the answer to a message of the protocol. It must not wait
// for that. The writer may be waiting until the other side reads, and the other side may wait, as we do, until it can
// send: then nobody would read any more. So the reader sends what goes through at once and leaves the rest to the next
// writer or reader; the protocol asks for no more. Only in the middle of a handshake it waits, because the other side
// says nothing more until it has the answer. If another task has the turn, that task looks for new ciphertext after it
// has given the turn up; either it sees the reader's, or the reader gets the turn.
//
// A writer may have to read. A message of the protocol, such as a ticket for the next session, may be spread over several
// records, and in the middle of it OpenSSL writes nothing. The writer then gives up its turn, takes the one for reading
// and reads to the end of the message. A reader that has that turn gives it up after every piece that has come, and
// `reading_` serves in order: so the writer learns that the message is whole even if the reader waits for more.
//
// Another side that demands answers for ever and reads none must not fill our memory. When too much waits to be sent,
// read() fails with errc::protocol_error. It does not wait until it is sent, for the reason above; and no program that
// reads what it is sent meets this.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <mutex>
#include <new>
#include <source_location>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <weft/buffer.hpp>
#include <weft/cancelled.hpp>
#include <weft/mutex.hpp>
#include <weft/semaphore.hpp>
#include <weft/tls/engine.hpp>

namespace weft::inline v1 {

// What TLS can run on: net::tcp_stream, net::unix_stream.
template <class S>
concept tls_transport = requires(const S& s, mutable_buffer to, const_buffer from, std::error_code& why,
                                 std::source_location where, std::chrono::steady_clock::time_point when) {
  { s.read_some(to, why, where) } -> std::same_as<std::size_t>;
  { s.write_some(from, why, where) } -> std::same_as<std::size_t>;
  { s.write_some_until(when, from, why, where) } -> std::same_as<std::size_t>;
};

namespace detail {

template <tls_transport Stream>
class tls_link {
 public:
  using source = std::source_location;

  tls_link(Stream transport, SSL_CTX* context) : engine_(context), transport_(std::move(transport)) {}

  std::error_code handshake(const tls_client& as, source where) {
    if (const std::error_code why = engine_.begin(as)) return why;
    return handshake(where);
  }
  std::error_code handshake(const tls_server& as, source where) {
    engine_.begin(as);
    return handshake(where);
  }

  // Returns 0 at the end, and for no room at all.
  std::size_t read(std::span<const mutable_buffer> to, std::error_code& why, source where) {
    why.clear();
    for (;;) {
      const reading_turn mine(reading_, where);  // each time anew, for a writer in take_message()
      if (size_of(to) == 0) return 0;
      const tls_outcome o = engine_.read(to);
      const bool must_send = o.step == tls_step::wants_input && o.is_in_handshake;
      if (o.has_output && must_send) why = flush(where);
      if (o.has_output && !must_send) flush_what_goes(where);
      if (o.step == tls_step::failed) why = o.why;
      if (o.step == tls_step::wants_input && !why) why = feed_more(where);
      if (o.step != tls_step::wants_input || why) return o.bytes;
    }
  }

  // Returns how much was encrypted and sent. After an error a part of it may still be in the queue: then every later
  // write fails, because a caller that repeats what seems not to be sent would send it twice.
  std::size_t write(std::span<const const_buffer> from, std::error_code& why, source where) {
    why.clear();
    for (;;) {
      tls_outcome o{.step = tls_step::done};
      {
        const turn mine(writing_, where);
        if (is_write_unfinished_) why = tls_errc::unfinished_write;
        if (!why) why = drain(where);  // what a reader has left
        if (why || size_of(from) == 0) return 0;
        o = engine_.write(from);
        if (o.step == tls_step::done) {
          is_write_unfinished_ = true;  // also if drain() throws
          why = drain(where);
          if (!why) is_write_unfinished_ = false;
        }
      }
      flush_what_goes(where);
      if (o.step == tls_step::wants_input)
        why = take_message(where);
      else if (o.step != tls_step::done)
        why = reason_of(o);
      if (why) return 0;
      if (o.step == tls_step::done) return o.bytes;
    }
  }

  std::error_code close_notify(source where) {
    for (;;) {
      tls_outcome o{.step = tls_step::done};
      {
        const turn mine(writing_, where);
        o = engine_.close_notify();
        if (o.step == tls_step::failed) return o.why;
        if (const std::error_code why = drain(where)) return why;
      }
      flush_what_goes(where);
      if (o.step != tls_step::wants_input) return {};
      if (const std::error_code why = take_message(where)) return why;
    }
  }

  [[nodiscard]] Stream& transport() noexcept { return transport_; }
  [[nodiscard]] SSL* native_handle() const noexcept { return engine_.native_handle(); }

 private:
  class turn {
   public:
    turn(mutex& m, source where) : mutex_(m) { m.lock(where); }
    ~turn() { mutex_.unlock(); }
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;

   private:
    mutex& mutex_;
  };

  class reading_turn {
   public:
    reading_turn(semaphore& s, source where) : semaphore_(s) { s.acquire(1, where); }
    ~reading_turn() { semaphore_.release(); }
    reading_turn(const reading_turn&) = delete;
    reading_turn& operator=(const reading_turn&) = delete;

   private:
    semaphore& semaphore_;
  };

  std::error_code handshake(source where) {
    const reading_turn mine(reading_, where);
    for (;;) {
      const tls_outcome o = engine_.handshake();
      if (o.step == tls_step::failed) {
        flush_what_goes(where);  // the other side should learn why
        return o.why;
      }
      if (const std::error_code why = flush(where)) return why;
      if (o.step == tls_step::done) return {};
      if (const std::error_code why = feed_more(where)) return why;
    }
  }

  // For a writer: a part of a message from the other side has come, and OpenSSL writes nothing before it has all of it.
  // Not in the turn `writing_`. Only this message is read, so whatever comes behind it is left to the readers.
  std::error_code take_message(source where) {
    const reading_turn mine(reading_, where);
    for (;;) {
      const tls_outcome o = engine_.handshake();
      if (o.has_output) flush_what_goes(where);
      if (o.step == tls_step::done) return {};
      if (o.step != tls_step::wants_input) return reason_of(o);
      if (const std::error_code why = feed_more(where)) return why;
    }
  }
  // Also of an end where there must be none.
  static std::error_code reason_of(const tls_outcome& o) {
    return o.why ? o.why : std::make_error_code(std::errc::protocol_error);
  }

  // Reads ciphertext. In the turn `reading_`.
  std::error_code feed_more(source where) {
    std::error_code why;
    const std::size_t n = transport_.read_some(in_, why, where);
    if (why) return why;
    if (n == 0) return tls_errc::truncated;  // after close_notify nobody asks for more
    engine_.feed({in_.data(), n});
    return {};
  }

  std::error_code flush(source where) {
    const turn mine(writing_, where);
    return drain(where);
  }
  // Throws nothing: the caller has a result already, perhaps plaintext. What was not sent is still there.
  void flush_what_goes(source where) {
    constexpr std::chrono::steady_clock::time_point at_once;
    while (engine_.has_output()) {
      const std::unique_lock mine(writing_, std::try_to_lock);
      if (!mine) return;
      try {
        if (drain([&](const_buffer b, std::error_code& why) {
              return transport_.write_some_until(at_once, b, why, where);
            }))
          return;
      } catch (const cancelled&) {  // the next wait throws again
        return;
      } catch (const std::bad_alloc&) {
        return;
      }
    }
  }

  // Writes all ciphertext that there is. In the turn `writing_`.
  std::error_code drain(source where) {
    return drain([&](const_buffer b, std::error_code& why) { return transport_.write_some(b, why, where); });
  }
  template <class Write>
  std::error_code drain(Write write) {
    for (std::error_code why;;) {
      if (sent_ == out_.size()) {
        out_.clear();  // before anything can throw: nothing goes onto the wire twice
        sent_ = 0;
        if (!engine_.take_output(out_)) return {};
      }
      const std::size_t n = write(const_buffer(out_).after(sent_), why);
      if (why) return why;
      sent_ += n;
    }
  }

  template <class Buffer>
  static std::size_t size_of(std::span<const Buffer> all) noexcept {
    std::size_t n = 0;
    for (const Buffer& b : all) n += b.size();
    return n;
  }

  tls_engine engine_;
  Stream transport_;
  semaphore reading_{1};  // serves in order, which a mutex does not
  mutex writing_;
  std::vector<std::byte> out_;  // taken from the engine; the first sent_ bytes are on the wire
  std::size_t sent_ = 0;
  bool is_write_unfinished_ = false;  // nobody knows how much of a write the other side gets; in the turn `writing_`
  std::array<std::byte, tls_engine::record_size + 512> in_;  // a record with what surrounds it
};

}  // namespace detail

}  // namespace weft::inline v1
