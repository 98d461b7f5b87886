// How long a descriptor and its record live: a count of owners (streams, halves of streams) and a count of uses
// (operations, which may be waiting), in one word. An open descriptor counts as one more use, which close() gives up.
//
// Every function that can end something says what has ended, and its caller does the work. After that it must not touch
// the record again, because somebody else may give it back.
//
// io.R1. The number is given back to the kernel by whoever ends the last use after close(). So no operation ever works
//     on a number that belongs to somebody else.                                     model/fd_life_*, test io/close_*
// io.R2. The record is given back by whoever drops the last of uses and owners, once.  model/fd_life_*, test io/close_*
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "base/mutation.hpp"

namespace weft::inline v1::io {

class fd_life {
 public:
  // What the caller has to do.
  struct ended {
    bool number = false;  // close the number
    bool record = false;  // give back the record
  };

  // A new descriptor with one owner. release pairs with the acquire in begin_use().
  void begin() noexcept { word_.store(one_owner + one_use, base::release); }
  [[nodiscard]] bool is_closed() const noexcept { return (word_.load(base::relaxed) & closing) != 0; }

  // --- uses ---------------------------------------------------------------------------------------------------------
  // Returns false if the descriptor is closed. A loop and not an addition that is taken back: taking it back would end
  // the last use a second time.
  [[nodiscard]] bool begin_use() noexcept {
    std::uint64_t seen = word_.load(base::relaxed);
    do {
      if (base::check<"fd_life.begin_use">((seen & closing) != 0)) return false;
    } while (!word_.compare_exchange_weak(seen, seen + one_use, base::acquire, base::relaxed));
    return true;
  }
  [[nodiscard]] ended end_use() noexcept {
    // release: what this use did comes before the end. acquire: so does what all others did. Pairs with itself and with
    // drop_owner().
    const std::uint64_t left = word_.fetch_sub(one_use, base::order<"fd_life.end_use">(base::acq_rel)) - one_use;
    if ((left & uses) != 0) return {};
    return {.number = (left & keeps_number) == 0, .record = (left & owners) == 0};
  }

  // --- closing ------------------------------------------------------------------------------------------------------
  // Returns true for one caller only, which then stops the waits and calls end_use().
  [[nodiscard]] bool begin_close() noexcept { return (word_.fetch_or(closing, base::relaxed) & closing) == 0; }
  // The same, but the number is not closed. Also returns false while the descriptor is in use.
  [[nodiscard]] bool begin_release() noexcept {
    std::uint64_t seen = word_.load(base::relaxed);
    do {
      if ((seen & closing) != 0 || (seen & uses) != one_use) return false;
      // acquire pairs with the release in end_use(): the last use is over.
    } while (!word_.compare_exchange_weak(seen, seen | closing | keeps_number, base::acquire, base::relaxed));
    return true;
  }

  // --- owners -------------------------------------------------------------------------------------------------------
  void add_owner() noexcept { word_.fetch_add(one_owner, base::relaxed); }
  // Returns true if that was the last owner of an open descriptor. The caller closes it then; nobody gives the record
  // back meanwhile, because an open descriptor counts as a use.
  [[nodiscard]] bool drop_owner(ended& e) noexcept {
    const std::uint64_t left =
        word_.fetch_sub(one_owner, base::order<"fd_life.drop_owner">(base::acq_rel)) - one_owner;  // as end_use()
    if ((left & owners) != 0) return false;
    if ((left & closing) == 0) return true;
    e.record = (left & uses) == 0;
    return false;
  }

 private:
  static constexpr std::uint64_t one_use = 1;
  static constexpr std::uint64_t uses = (std::uint64_t{1} << 32) - 1;
  static constexpr std::uint64_t one_owner = std::uint64_t{1} << 32;
  static constexpr std::uint64_t owners = ((std::uint64_t{1} << 30) - 1) << 32;
  static constexpr std::uint64_t closing = std::uint64_t{1} << 62;
  static constexpr std::uint64_t keeps_number = std::uint64_t{1} << 63;  // the number belongs to somebody else now

  base::atomic<std::uint64_t> word_{closing};
};

}  // namespace weft::inline v1::io
