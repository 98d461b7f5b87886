// The explorer itself on the classic litmus tests: the exact set of outcomes, with pruning and without it.
//
// Each outcome is what the reads returned, in the order written; "final" values are read after all threads have ended.
// Allowed and forbidden follow C++20 ([intro.races], [atomics.order]); where the explorer sees less, the test says so (LB).
#include <string>

#include "explore/explore.hpp"

using namespace weft::base;
using explore::join_all;
using explore::outcome;
using explore::thread;

namespace {
struct two {
  atomic<int> x{0}, y{0};
};
}  // namespace

// ---- store buffering: x=1; r1=y || y=1; r2=x.   Outcome r1 r2.

static void store_buffering(memory_order st, memory_order ld, bool fence1, bool fence2) {
  two v;
  int r1 = 9, r2 = 9;
  thread([&] {
    v.x.store(1, st);
    if (fence1) fence_seq_cst();
    r1 = v.y.load(ld);
  });
  thread([&] {
    v.y.store(1, st);
    if (fence2) fence_seq_cst();
    r2 = v.x.load(ld);
  });
  join_all();
  outcome("%d%d", r1, r2);
}
MODEL_TEST(sb_relaxed_allows_00, .preemptions = -1, .old_reads = -1, .outcomes = "00 01 10 11") {
  store_buffering(relaxed, relaxed, false, false);
}
MODEL_TEST(sb_release_acquire_allows_00, .preemptions = -1, .old_reads = -1, .outcomes = "00 01 10 11") {
  store_buffering(release, acquire, false, false);
}
MODEL_TEST(sb_seq_cst_forbids_00, .preemptions = -1, .old_reads = -1, .outcomes = "01 10 11") {
  store_buffering(seq_cst, seq_cst, false, false);
}
MODEL_TEST(sb_two_fences_forbid_00, .preemptions = -1, .old_reads = -1, .outcomes = "01 10 11") {
  store_buffering(relaxed, relaxed, true, true);
}
MODEL_TEST(sb_one_fence_allows_00, .preemptions = -1, .old_reads = -1, .outcomes = "00 01 10 11") {
  store_buffering(relaxed, relaxed, true, false);
}
MODEL_TEST(sb_seq_cst_stores_alone_allow_00, .preemptions = -1, .old_reads = -1, .outcomes = "00 01 10 11") {
  store_buffering(seq_cst, relaxed, false, false);
}
MODEL_TEST(sb_fence_and_seq_cst_operations_forbid_00, .preemptions = -1, .old_reads = -1, .outcomes = "01 10 11") {
  two v;
  int r1 = 9, r2 = 9;
  thread([&] {
    v.x.store(1, relaxed);
    fence_seq_cst();
    r1 = v.y.load(relaxed);
  });
  thread([&] {
    v.y.store(1, seq_cst);
    r2 = v.x.load(seq_cst);
  });
  join_all();
  outcome("%d%d", r1, r2);
}

// ---- message passing: data=1; flag=1 || r1=flag; r2=data.   Outcome r1 r2.

static void message_passing(memory_order st, memory_order ld, bool release_fence, bool acquire_fence) {
  two v;
  int r1 = 9, r2 = 9;
  thread([&] {
    v.x.store(1, relaxed);
    if (release_fence) explore::fence(release);
    v.y.store(1, st);
  });
  thread([&] {
    r1 = v.y.load(ld);
    if (acquire_fence) explore::fence(acquire);
    r2 = v.x.load(relaxed);
  });
  join_all();
  outcome("%d%d", r1, r2);
}
MODEL_TEST(mp_relaxed_allows_10, .preemptions = -1, .old_reads = -1, .outcomes = "00 01 10 11") {
  message_passing(relaxed, relaxed, false, false);
}
MODEL_TEST(mp_release_acquire_forbids_10, .preemptions = -1, .old_reads = -1, .outcomes = "00 01 11") {
  message_passing(release, acquire, false, false);
}
MODEL_TEST(mp_release_alone_allows_10, .preemptions = -1, .old_reads = -1, .outcomes = "00 01 10 11") {
  message_passing(release, relaxed, false, false);
}
MODEL_TEST(mp_acquire_alone_allows_10, .preemptions = -1, .old_reads = -1, .outcomes = "00 01 10 11") {
  message_passing(relaxed, acquire, false, false);
}
MODEL_TEST(mp_fence_to_fence_forbids_10, .preemptions = -1, .old_reads = -1, .outcomes = "00 01 11") {
  message_passing(relaxed, relaxed, true, true);
}
MODEL_TEST(mp_fence_to_acquire_forbids_10, .preemptions = -1, .old_reads = -1, .outcomes = "00 01 11") {
  message_passing(relaxed, acquire, true, false);
}
MODEL_TEST(mp_release_to_fence_forbids_10, .preemptions = -1, .old_reads = -1, .outcomes = "00 01 11") {
  message_passing(release, relaxed, false, true);
}
MODEL_TEST(mp_one_fence_allows_10, .preemptions = -1, .old_reads = -1, .outcomes = "00 01 10 11") {
  message_passing(relaxed, relaxed, true, false);
}

// ---- load buffering: r1=x; y=1 || r2=y; x=1.   C++ allows 11 with relaxed; the explorer executes in program order and never
// reads from the future, so it does not see it (and no out-of-thin-air values either).

MODEL_TEST(lb_relaxed_11_is_not_explored, .preemptions = -1, .old_reads = -1, .outcomes = "00 01 10") {
  two v;
  int r1 = 9, r2 = 9;
  thread([&] {
    r1 = v.x.load(relaxed);
    v.y.store(1, relaxed);
  });
  thread([&] {
    r2 = v.y.load(relaxed);
    v.x.store(1, relaxed);
  });
  join_all();
  outcome("%d%d", r1, r2);
}

// ---- independent reads of independent writes: x=1 || y=1 || a=x; b=y || c=y; d=x.   Outcome a b c d.

static std::string all_but(const char* forbidden) {
  std::string all;
  for (int i = 0; i < 16; ++i) {
    char t[5] = {char('0' + (i >> 3 & 1)), char('0' + (i >> 2 & 1)), char('0' + (i >> 1 & 1)), char('0' + (i & 1)), 0};
    if (std::string(t) != forbidden) all += std::string(t) + " ";
  }
  return all;
}
static const std::string all16 = all_but(""), all_but_1010 = all_but("1010");

static void iriw(memory_order st, memory_order ld, bool fences) {
  two v;
  int a = 9, b = 9, c = 9, d = 9;
  thread([&] { v.x.store(1, st); });
  thread([&] { v.y.store(1, st); });
  thread([&] {
    a = v.x.load(ld);
    if (fences) fence_seq_cst();
    b = v.y.load(ld);
  });
  thread([&] {
    c = v.y.load(ld);
    if (fences) fence_seq_cst();
    d = v.x.load(ld);
  });
  join_all();
  outcome("%d%d%d%d", a, b, c, d);
}
MODEL_TEST(iriw_release_acquire_allows_1010, .preemptions = -1, .old_reads = -1, .outcomes = all16.c_str()) {
  iriw(release, acquire, false);
}
MODEL_TEST(iriw_seq_cst_forbids_1010, .preemptions = -1, .old_reads = -1, .outcomes = all_but_1010.c_str()) {
  iriw(seq_cst, seq_cst, false);
}
MODEL_TEST(iriw_fences_forbid_1010, .preemptions = -1, .old_reads = -1, .outcomes = all_but_1010.c_str()) {
  iriw(relaxed, relaxed, true);
}

// ---- 2+2W: x=1; y=2 || y=1; x=2.   Outcome: final x, final y.

static void two_plus_two_w(memory_order st, bool fences) {
  two v;
  thread([&] {
    v.x.store(1, st);
    if (fences) fence_seq_cst();
    v.y.store(2, st);
  });
  thread([&] {
    v.y.store(1, st);
    if (fences) fence_seq_cst();
    v.x.store(2, st);
  });
  join_all();
  outcome("%d%d", v.x.load(relaxed), v.y.load(relaxed));
}
MODEL_TEST(two_plus_two_w_relaxed_allows_11, .preemptions = -1, .old_reads = -1, .outcomes = "11 12 21 22") {
  two_plus_two_w(relaxed, false);
}
MODEL_TEST(two_plus_two_w_release_allows_11, .preemptions = -1, .old_reads = -1, .outcomes = "11 12 21 22") {
  two_plus_two_w(release, false);
}
MODEL_TEST(two_plus_two_w_seq_cst_forbids_11, .preemptions = -1, .old_reads = -1, .outcomes = "12 21 22") {
  two_plus_two_w(seq_cst, false);
}
MODEL_TEST(two_plus_two_w_fences_forbid_11, .preemptions = -1, .old_reads = -1, .outcomes = "12 21 22") {
  two_plus_two_w(relaxed, true);
}

// ---- S: x=2; y=1 rel || r=y acq; x=1.   Outcome r, final x; 12 forbidden.   R: x=1; y=1 || y=2; r=x.   Outcome final y, r.

MODEL_TEST(s_forbids_12, .preemptions = -1, .old_reads = -1, .outcomes = "01 02 11") {
  two v;
  int r = 9;
  thread([&] {
    v.x.store(2, relaxed);
    v.y.store(1, release);
  });
  thread([&] {
    r = v.y.load(acquire);
    v.x.store(1, relaxed);
  });
  join_all();
  outcome("%d%d", r, v.x.load(relaxed));
}
static void r_shape(bool fences) {
  two v;
  int r = 9;
  thread([&] {
    v.x.store(1, relaxed);
    if (fences) fence_seq_cst();
    v.y.store(1, relaxed);
  });
  thread([&] {
    v.y.store(2, relaxed);
    if (fences) fence_seq_cst();
    r = v.x.load(relaxed);
  });
  join_all();
  outcome("%d%d", v.y.load(relaxed), r);
}
MODEL_TEST(r_relaxed_allows_20, .preemptions = -1, .old_reads = -1, .outcomes = "10 11 20 21") { r_shape(false); }
MODEL_TEST(r_fences_forbid_20, .preemptions = -1, .old_reads = -1, .outcomes = "10 11 21") { r_shape(true); }

// ---- WRC: x=1 || r1=x; y=1 rel || r2=y acq; r3=x.   110 forbidden: what the second thread has read is passed on.

MODEL_TEST(wrc_forbids_110, .preemptions = -1, .old_reads = -1, .outcomes = "000 001 010 011 100 101 111") {
  two v;
  int r1 = 9, r2 = 9, r3 = 9;
  thread([&] { v.x.store(1, relaxed); });
  thread([&] {
    r1 = v.x.load(relaxed);
    v.y.store(1, release);
  });
  thread([&] {
    r2 = v.y.load(acquire);
    r3 = v.x.load(relaxed);
  });
  join_all();
  outcome("%d%d%d", r1, r2, r3);
}

// ---- coherence, all relaxed

MODEL_TEST(corr_reads_do_not_go_back, .preemptions = -1, .old_reads = -1, .outcomes = "00 01 02 11 12 22") {
  atomic<int> x{0};
  int r1 = 9, r2 = 9;
  thread([&] {
    x.store(1, relaxed);
    x.store(2, relaxed);
  });
  thread([&] {
    r1 = x.load(relaxed);
    r2 = x.load(relaxed);
  });
  join_all();
  outcome("%d%d", r1, r2);
}
static std::string agreeing() {
  const char* pairs[] = {"00", "01", "02", "11", "12", "21", "22"};
  std::string all;
  for (const char* p : pairs)
    for (const char* q : pairs) {
      const std::string o = std::string(p) + q;
      if (o != "1221" && o != "2112") all += o + " ";
    }
  return all;
}
static const std::string agreeing_pairs = agreeing();
MODEL_TEST(corr_two_readers_agree_on_the_order, .preemptions = -1, .old_reads = -1,
           .outcomes = agreeing_pairs.c_str()) {
  atomic<int> x{0};
  int a = 9, b = 9, c = 9, d = 9;
  thread([&] { x.store(1, relaxed); });
  thread([&] { x.store(2, relaxed); });
  thread([&] {
    a = x.load(relaxed);
    b = x.load(relaxed);
  });
  thread([&] {
    c = x.load(relaxed);
    d = x.load(relaxed);
  });
  join_all();
  outcome("%d%d%d%d", a, b, c, d);
}
MODEL_TEST(coww_later_store_stays, .preemptions = -1, .old_reads = -1, .outcomes = "2") {
  atomic<int> x{0};
  thread([&] {
    x.store(1, relaxed);
    x.store(2, relaxed);
  });
  join_all();
  outcome("%d", x.load(relaxed));
}
MODEL_TEST(corw_store_goes_behind_what_was_read, .preemptions = -1, .old_reads = -1, .outcomes = "01 02 21") {
  atomic<int> x{0};
  int r = 9;
  thread([&] {
    r = x.load(relaxed);
    x.store(1, relaxed);
  });
  thread([&] { x.store(2, relaxed); });
  join_all();
  outcome("%d%d", r, x.load(relaxed));
}
MODEL_TEST(cowr_own_store_is_not_skipped, .preemptions = -1, .old_reads = -1, .outcomes = "11 12 22") {
  atomic<int> x{0};
  int r = 9;
  thread([&] {
    x.store(1, relaxed);
    r = x.load(relaxed);
  });
  thread([&] { x.store(2, relaxed); });
  join_all();
  outcome("%d%d", r, x.load(relaxed));
}

// ---- read-modify-writes

MODEL_TEST(rmw_is_atomic, .preemptions = -1, .old_reads = -1, .outcomes = "012 021 102 120 201 210") {
  atomic<int> x{0};
  int r[3] = {9, 9, 9};
  for (int i = 0; i < 3; ++i) thread([&, i] { r[i] = x.fetch_add(1, relaxed); });
  join_all();
  outcome("%d%d%d", r[0], r[1], r[2]);
}
MODEL_TEST(rmw_and_store, .preemptions = -1, .old_reads = -1, .outcomes = "05 56") {
  atomic<int> x{0};  // x+=1 || x=5.   Outcome: old value, final
  int r = 9;
  thread([&] { r = x.fetch_add(1, relaxed); });
  thread([&] { x.store(5, relaxed); });
  join_all();
  outcome("%d%d", r, x.load(relaxed));
}
MODEL_TEST(failed_cas_may_be_old, .preemptions = -1, .old_reads = -1, .outcomes = "00 01 10 11") {
  two v;  // x=1; y=1 || r1=y; cas(x: 7 -> 8) fails and reads r2
  int r1 = 9, r2 = 7;
  thread([&] {
    v.x.store(1, relaxed);
    v.y.store(1, relaxed);
  });
  thread([&] {
    r1 = v.y.load(relaxed);
    v.x.compare_exchange_strong(r2, 8, relaxed, relaxed);
  });
  join_all();
  outcome("%d%d", r1, r2);
}
MODEL_TEST(sb_with_rmw_allows_00, .preemptions = -1, .old_reads = -1, .outcomes = "00 01 10 11") {
  two v;  // an acq_rel read-modify-write is no store-load barrier
  int r1 = 9, r2 = 9;
  thread([&] {
    v.x.exchange(1, acq_rel);
    r1 = v.y.load(acquire);
  });
  thread([&] {
    v.y.exchange(1, acq_rel);
    r2 = v.x.load(acquire);
  });
  join_all();
  outcome("%d%d", r1, r2);
}

// ---- release sequences: data=1; x=1 rel || cas(x: 1 -> 2) relaxed || r=x acq; if r==2, data.

static void release_sequence(bool rmw) {
  plain<int> data{0};
  atomic<int> x{0};
  int r = 9, d = 9;
  thread([&] {
    data = 1;
    x.store(1, release);
  });
  thread([&] {
    int one = 1;
    if (rmw)
      x.compare_exchange_strong(one, 2, relaxed, relaxed);
    else if (x.load(relaxed) == 1)
      x.store(2, relaxed);
  });
  thread([&] {
    r = x.load(acquire);
    if (r == 2) d = data;
  });
  join_all();
  outcome("%d%d", r, d);
}
MODEL_TEST(release_sequence_through_rmw, .preemptions = -1, .old_reads = -1, .outcomes = "09 19 21") {
  release_sequence(true);
}
MODEL_TEST(release_sequence_broken_by_store, .preemptions = -1, .old_reads = -1, .fails = "data race") {
  release_sequence(false);
}
MODEL_TEST(release_sequence_not_through_own_relaxed_store, .preemptions = -1, .old_reads = -1, .fails = "data race") {
  plain<int> data{0};  // was allowed until C++17
  atomic<int> x{0};
  thread([&] {
    data = 1;
    x.store(1, release);
    x.store(2, relaxed);
  });
  thread([&] {
    if (x.load(acquire) == 2) (void)data.get();
  });
  join_all();
}

// ---- the bound restricts schedules, not what a load may see

MODEL_TEST(sb_weak_outcome_needs_no_preemption, .preemptions = 0, .old_reads = -1, .outcomes = "00 01 10") {
  store_buffering(relaxed, relaxed, false, false);
}
MODEL_TEST(sb_one_preemption, .preemptions = 1, .old_reads = -1, .outcomes = "00 01 10 11") {
  store_buffering(relaxed, relaxed, false, false);
}
