#pragma once
// Linear layers of one row of x, with the norm before them and what follows: y = residual +
// act(gate) * up (FusedLinearArgs). Memory bandwidth limits it. As many blocks as the device holds
// at once put x into shared memory, in the form that the weights' format needs, and then go from
// group to group of weight rows. While a wave multiplies, it loads its next trips along its rows:
// into registers, or into a ring in shared memory, which it fills before the previous kernel has
// ended.
//
// A Format defines how rows are read and multiplied:
// - kThreads: threads of a block.
// - kRing: whether trips lie in a ring, else in registers.
// - Fetched: a lane's part of a row in a trip.
// - staged_bytes(), stage(ask): puts x into the block's dynamic shared memory; all threads call it.
//   It calls ask(0) first, with kRing before it waits for the kernel in front, and ask(1) after it
//   has asked for x. Returns the factor of the results.
// - fetch(to, row, trip, lane), without kRing: reads a trip.
// - With kRing: kTripBytes, bytes of a row's trip in the ring; copy(to, row, trip, lane), which
//   starts to copy a trip there; take(to, from, lane), which reads it from there.
// - multiply(rows, trip, lane, sums): adds the products.
// - Result: writes results, see OneGroups.
#include "backends/gpu/instructions.h"
#include "backends/gpu/kernels/matvec_one_groups.h"
#include "backends/shared/matvec_params.h"

namespace rbee {
namespace gpu {

// Neighbouring elements, loaded 16 bytes at a time if there are that many. They stay words: apart,
// halves would take a register each.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) Run {
  u32 words[sizeof(T) * kCount / 4];
  RB_DEVICE float value(int i) const { return load_value(element<T>(words, i)); }
};

// The block's dynamic shared memory: x, then the rings of its waves.
RB_DEVICE u8* staged() {
  RB_DYNAMIC_SHARED(bytes);
  return bytes;
}

// Trips of `trip` pieces along a row; x counts as 0 past the row's end.
RB_DEVICE i32 trips_of(const MatvecOneParams& p, i32 trip) {
  return (p.pieces + trip - 1) / trip;
}

// x as the threads of a block read it: `runs` runs of kEach neighbouring elements, 0 past its
// end. The constructor asks for the norm's weight, each() for x.
template <class T, int kEach, int kWave, int kThreads>
class StagedX {
 public:
  RB_DEVICE StagedX(const MatvecOneParams& p, i32 runs)
      : p_(p), runs_(runs), filled_(p.in / kEach), thread_(static_cast<i32>(thread_x())) {
    if (p.norm_weight != nullptr) load(p.norm_weight, 0, weight_);
  }

  // Calls put(run, values) for each run, of x or its norm. A wave's threads call it together, for
  // neighbouring runs from a multiple of kWave on, also past the last.
  template <class Put>
  RB_DEVICE void each(const Put& put) {
    if (p_.norm_weight != nullptr) return normed(put);
    for (i32 first = 0; first < runs_; first += kPass) {
      Some x;
      load(p_.x, first, x);
      put_some(first, put, [&](int k, int i) { return x[k].value(i); });
    }
  }

 private:
  static constexpr int kAhead = (sizeof(T) == 4 ? 16 : 32) / kEach;  // loads under way
  static constexpr i32 kPass = kAhead * kThreads;
  using Some = Run<T, kEach>[kAhead];

  RB_DEVICE i32 run_of(i32 first, int k) const { return first + k * kThreads + thread_; }
  RB_DEVICE void load(const void* from, i32 first, Some& to) const {
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const i32 run = run_of(first, k);
      if (run < filled_) to[k] = static_cast<const Run<T, kEach>*>(from)[run];
    }
  }

  // The norm's factor, from a thread's sum of squares.
  RB_DEVICE float factor_of(float squares) const {
    RB_SHARED float slots[kThreads / kWave];
    squares = block_sum<kWave, kThreads>(squares, slots);
    return 1.0f / sqrt(squares / static_cast<float>(p_.in) + p_.eps);
  }

  template <class Put>
  RB_DEVICE void normed(const Put& put) {
    Some x;
    load(p_.x, 0, x);
    float squares = 0;
    for (i32 first = 0; first < filled_; first += kPass) {
      if (first > 0) load(p_.x, first, x);
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (run_of(first, k) >= filled_) break;
        for (int i = 0; i < kEach; ++i) squares += x[k].value(i) * x[k].value(i);
      }
    }
    const float scale = factor_of(squares);
    for (i32 first = 0; first < runs_; first += kPass) {
      if (filled_ > kPass) load(p_.x, first, x);
      if (first > 0) load(p_.norm_weight, first, weight_);
      // Rounded, as if the norm had been an operation of its own.
      put_some(first, put, [&](int k, int i) {
        return load_value(store_value<T>(x[k].value(i) * scale * weight_[k].value(i)));
      });
    }
  }

  template <class Put, class Value>
  RB_DEVICE void put_some(i32 first, const Put& put, const Value& value) const {
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (first + k * kThreads >= runs_) break;
      const i32 run = run_of(first, k);
      float values[kEach] = {};
      if (run < filled_) {
#pragma unroll
        for (int i = 0; i < kEach; ++i) values[i] = value(k, i);
      }
      put(run, values);
    }
  }

  const MatvecOneParams& p_;
  i32 runs_, filled_, thread_;
  Some weight_;
};

// The trips that a wave has requested, in the order of push(): one in registers,
template <class Format>
class RegistersAhead {
 public:
  using Rows = typename Format::Fetched[kMatvecOuts];

  RB_DEVICE RegistersAhead(const Format&, const MatvecOneParams&, int) {}
  RB_DEVICE i32 trips() const { return 1; }
  RB_DEVICE void push(const Format& format, const u8* const (&rows)[kMatvecOuts], i32 trip,
                      int lane) {
#pragma unroll
    for (int o = 0; o < kMatvecOuts; ++o) format.fetch(next_[o], rows[o], trip, lane);
    loads_before();
  }
  // Ends a place in the order, also one without a push().
  RB_DEVICE void close() {}
  RB_DEVICE void take(const Format&, Rows& to, int) {
#pragma unroll
    for (int o = 0; o < kMatvecOuts; ++o) to[o] = next_[o];
  }

 private:
  Rows next_;
};

// or p.ring of them on their way to shared memory.
template <class Format>
class RingAhead {
 public:
  using Rows = typename Format::Fetched[kMatvecOuts];

  RB_DEVICE RingAhead(const Format& format, const MatvecOneParams& p, int wave)
      : trips_(p.ring), begin_(format.staged_bytes() + wave * p.ring * kPlace), at_(begin_) {}
  RB_DEVICE i32 trips() const { return trips_; }
  RB_DEVICE void push(const Format& format, const u8* const (&rows)[kMatvecOuts], i32 trip,
                      int lane) {
#pragma unroll
    for (int o = 0; o < kMatvecOuts; ++o) {
      format.copy(at_ + o * Format::kTripBytes, rows[o], trip, lane);
    }
  }
  RB_DEVICE void close() {
    commit_copies();
    at_ += kPlace;
    if (at_ == begin_ + trips_ * kPlace) at_ = begin_;
  }
  RB_DEVICE void take(const Format& format, Rows& to, int lane) {
    if (trips_ == 4) {
      wait_copies<3>();
    } else if (trips_ == 3) {
      wait_copies<2>();
    } else if (trips_ == 2) {
      wait_copies<1>();
    } else {
      wait_copies<0>();
    }
    wave_barrier();  // each lane has waited for its own copies
#pragma unroll
    for (int o = 0; o < kMatvecOuts; ++o) format.take(to[o], at_ + o * Format::kTripBytes, lane);
    wave_barrier();  // before any lane copies to this place again
  }

 private:
  static constexpr i32 kPlace = kMatvecOuts * Format::kTripBytes;
  i32 trips_;
  i32 begin_, at_;  // in staged()
};

template <bool kRing, class Format>
struct AheadOf {
  using type = RegistersAhead<Format>;
};
template <class Format>
struct AheadOf<true, Format> {
  using type = RingAhead<Format>;
};

template <class Format, int kWave>
class MatvecOne {
 public:
  RB_DEVICE explicit MatvecOne(const MatvecOneParams& p)
      : p_(p),
        format_(p),
        lane_(static_cast<int>(thread_x()) % kWave),
        wave_(static_cast<int>(thread_x()) / kWave),
        slice_(wave_ % p.split),
        ahead_(format_, p, wave_),
        groups_(p) {}

  RB_DEVICE void run() {
    read_parameters(p_);
    const i32 of_block = kWaves / p_.split;
    const i32 begin = static_cast<i32>(block_x()) * of_block;
    mine_ = wave_ / p_.split;
    stride_ = static_cast<i32>(blocks_x()) * of_block;
    trips_ = format_.trips();
    ahead_first_ = begin;
    ahead_trip_ = slice_;
    point_at(begin + mine_);
    // Loads requested before x arrive before x, so request no more than arrives while the previous
    // kernel ends.
    constexpr i32 kEarly = 2;
    i32 asked = 0;
    groups_.ask();
    const float factor = format_.stage([&](int turn) {
      const i32 count = turn == 0 && ahead_.trips() > kEarly ? kEarly : ahead_.trips();
#pragma unroll 1
      for (; asked < count; ++asked) ask_for_next();
      if (turn == 0) groups_.done();
    });
    bool flip = false;
#pragma unroll 1
    for (i32 first = begin; first < p_.groups; first += stride_) {
      OneTarget target = groups_.target(first + mine_, lane_ / (kWave / 2));
      groups_.complete(target, lane_ / (kWave / 2));
      float sums[kMatvecOuts] = {};
#pragma unroll 1
      for (i32 trip = slice_; trip < trips_; trip += p_.split) {
        typename Format::Fetched now[kMatvecOuts];
        ahead_.take(format_, now, lane_);
        ask_for_next();
        format_.multiply(now, trip, lane_, sums);
      }
      finish(sums, factor, target, flip);
      flip = !flip;
    }
  }

 private:
  static constexpr int kWaves = Format::kThreads / kWave;
  using Ahead = typename AheadOf<Format::kRing, Format>::type;

  // Groups and rows past the end are read as the last, and not stored.
  RB_DEVICE void point_at(i32 group) {
    const OnePlace place = groups_.place_of(group < p_.groups ? group : p_.groups - 1);
    rows_[0] = row_of(place.part, place.out);
    if (p_.gate != 0) {
      rows_[1] = row_of(p_.parts[1], place.out);
      whole_end_ = p_.groups;
    } else {
      const bool both = place.out + place.step < place.part.outs;
      rows_[1] = both ? rows_[0] + place.step * p_.row_bytes : rows_[0];
      whole_end_ = p_.append != 0 ? 0 : place.part.first_group + place.part.outs / kMatvecOuts;
    }
  }

  RB_DEVICE const u8* row_of(const MatvecOnePart& part, i32 out) const {
    return static_cast<const u8*>(part.weight) + out * p_.row_bytes;
  }

  // Requests the wave's next trip, if there is one.
  RB_DEVICE void ask_for_next() {
    if (ahead_first_ < p_.groups) {
      ahead_.push(format_, rows_, ahead_trip_, lane_);
      ahead_trip_ += p_.split;
      if (ahead_trip_ >= trips_) {
        ahead_trip_ = slice_;
        ahead_first_ += stride_;
        move_on(ahead_first_ + mine_);
      }
    }
    ahead_.close();
  }
  // From the rows of the wave's group before to those of `group`.
  RB_DEVICE void move_on(i32 group) {
    if (group >= whole_end_) return point_at(group);
    const i64 step = p_.row_bytes * (p_.gate != 0 ? stride_ : stride_ * kMatvecOuts);
#pragma unroll
    for (int o = 0; o < kMatvecOuts; ++o) rows_[o] += step;
  }

  // `flip` changes from group to group, so that one barrier is enough.
  RB_DEVICE void finish(const float (&sums)[kMatvecOuts], float factor, const OneTarget& target,
                        bool flip) {
    static_assert(kMatvecOuts == 2, "each half of a wave takes a row");
    RB_SHARED float partial[2][kWaves][kMatvecOuts];
    constexpr int kHalf = kWave / 2;
    const int row = lane_ / kHalf;
    const float given = row == 0 ? sums[1] : sums[0];
    float sum = (row == 0 ? sums[0] : sums[1]) + shuffle_xor<kWave>(given, kHalf);
    sum = wave_sum<kWave, kHalf>(sum);
    if (p_.split > 1) {
      if (lane_ % kHalf == 0) partial[flip][wave_][row] = sum;
      barrier();
      if (slice_ != 0) return;
      for (i32 s = 1; s < p_.split; ++s) sum += partial[flip][wave_ + s][row];
    }
    sum *= factor;
    const float other = shuffle_xor<kWave>(sum, kHalf);
    if (lane_ % kHalf == 0) groups_.put(target, sum, other);
  }

  const MatvecOneParams& p_;
  Format format_;
  int lane_, wave_, slice_;
  Ahead ahead_;
  OneGroups<typename Format::Result> groups_;
  i32 mine_ = 0;         // the wave's among the block's groups
  i32 stride_ = 0;       // groups from one of a wave's to its next
  i32 trips_ = 0;        // of a row
  i32 ahead_first_ = 0;  // the block's first group and the next trip to ask for
  i32 ahead_trip_ = 0;
  i32 whole_end_ = 0;            // after the last group of its part that has all rows
  const u8* rows_[kMatvecOuts];  // of that group
};

}  // namespace gpu
}  // namespace rbee
