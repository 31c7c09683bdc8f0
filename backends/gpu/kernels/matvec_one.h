#pragma once
// Linear layers of one row of x, with the norm before them and what follows: y = residual +
// act(gate) * up (FusedLinearArgs). Limited by the memory that the weights are read from. As many
// blocks as the device holds at once put x into shared memory, in the form that their format wants,
// and then go from group to group of weight rows; a wave has the loads of its next trips along its
// rows under way while it multiplies.
//
// A Format says how rows are read and multiplied:
//   Fetched                        what a lane holds of a row in a trip
//   kDeep                          whether two trips are fetched ahead, or one: what registers hold
//   stage()                        puts x into the block's dynamic shared memory; all threads
//   fetch(to, row, trip, lane)     starts the loads
//   multiply(rows, trip, lane, sums)  adds the products
//   store(p, part, out, sum)       writes a result with what is added to it
#include "backends/gpu/kernels/gates.h"
#include "backends/gpu/portable.h"
#include "backends/shared/matvec_params.h"

namespace rbee {
namespace gpu {

constexpr int kOneThreads = kMatvecThreads;

// Four neighbouring elements.
template <class T>
struct alignas(sizeof(T) * 4) Four {
  T values[4];
};

// Trips of `trip` pieces along a row. The last is moved back to end with the row; what it repeats
// of the one before counts as 0.
RB_DEVICE i32 trips_of(const MatvecOneParams& p, i32 trip) {
  return (p.pieces + trip - 1) / trip;
}
RB_DEVICE i32 first_piece(const MatvecOneParams& p, i32 trip, i32 size) {
  const i32 first = trip * size, last = p.pieces - size;
  return first < last ? first : last;
}

// put(quad, values) for the quads (four neighbouring elements) of all trips, `of_trip` each, with
// values of x or its norm. The threads of a wave call it together, for neighbouring quads from a
// multiple of kWave on, also past the last.
template <class T, int kWave, class Put>
RB_DEVICE void stage_x(const MatvecOneParams& p, i32 of_trip, const Put& put) {
  constexpr int kAhead = 4;  // loads under way
  RB_SHARED float slots[kOneThreads / kWave];
  const auto* x = static_cast<const Four<T>*>(p.x);
  const auto* weight = static_cast<const Four<T>*>(p.norm_weight);
  const i32 filled = p.in / 4;
  const i32 last = (filled + of_trip - 1) / of_trip * of_trip - of_trip;  // the last trip's first
  const i32 repeated = last + of_trip - filled;
  const i32 thread = static_cast<i32>(thread_x());
  float scale = 1;
  if (weight != nullptr) {
    float squares = 0;
#pragma unroll 4
    for (i32 at = thread; at < filled; at += kOneThreads) {
      prefetch(weight + at);
      const Four<T> in = x[at];
      for (int i = 0; i < 4; ++i) squares += load_value(in.values[i]) * load_value(in.values[i]);
    }
    squares = block_sum<kWave, kOneThreads>(squares, slots);
    scale = 1.0f / sqrt(squares / static_cast<float>(p.in) + p.eps);
  }
  for (i32 first = 0; first < last + of_trip; first += kAhead * kOneThreads) {
    Four<T> in[kAhead], by[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const i32 quad = first + k * kOneThreads + thread;
      i32 from = quad < last ? quad : quad - repeated;
      from = from < filled ? from : filled - 1;
      in[k] = x[from];
      if (weight != nullptr) by[k] = weight[from];
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const i32 quad = first + k * kOneThreads + thread;
      const bool live = quad < last || quad >= last + repeated;
      float values[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float value = load_value(in[k].values[i]);
        // Rounded, as if the norm had been an operation of its own.
        if (weight != nullptr) {
          value = load_value(store_value<T>(value * scale * load_value(by[k].values[i])));
        }
        values[i] = live ? value : 0.0f;
      }
      if (first + k * kOneThreads < last + of_trip) put(quad, values);
    }
  }
  barrier();
}

template <class Format, int kWave>
class MatvecOne {
 public:
  RB_DEVICE explicit MatvecOne(const MatvecOneParams& p)
      : p_(p),
        format_(p),
        lane_(static_cast<int>(thread_x()) % kWave),
        wave_(static_cast<int>(thread_x()) / kWave),
        slice_(wave_ % p.split) {}

  RB_DEVICE void run() {
    const i32 of_block = kWaves / p_.split;
    const i32 begin = static_cast<i32>(block_x()) * of_block;
    mine_ = wave_ / p_.split;
    stride_ = static_cast<i32>(blocks_x()) * of_block;
    trips_ = format_.trips();
    ahead_first_ = begin;
    ahead_trip_ = slice_;
    point_at(begin + mine_);
    Rows now, then;
    fetch_next(now);
    if (Format::kDeep) fetch_next(then);
    format_.stage();
    bool flip = false;
    for (i32 first = begin; first < p_.groups; first += stride_) {
      float sums[kMatvecOuts] = {};
      for (i32 trip = slice_;; trip += 2 * p_.split) {
        turn(now, then, trip, sums);
        if (trip + p_.split >= trips_) {
          swap(now, then);
          break;
        }
        turn(then, now, trip + p_.split, sums);
        if (trip + 2 * p_.split >= trips_) break;
      }
      finish(sums, first + mine_, flip);
      flip = !flip;
    }
  }

 private:
  static constexpr int kWaves = kOneThreads / kWave;
  using Rows = typename Format::Fetched[kMatvecOuts];

  struct Place {
    MatvecOnePart part;
    i32 out;
  };
  // Of the group's first row. Parameters are not indexed at run time: compilers then lose sight of
  // what pointers are to device memory, and use slower loads.
  RB_DEVICE Place place_of(i32 group) const {
    Place place{p_.parts[0], group};
    if (p_.gate != 0) return place;
#pragma unroll
    for (int i = 1; i < kMatvecParts; ++i) {
      if (i < p_.part_count && group >= p_.parts[i].first_group) place.part = p_.parts[i];
    }
    place.out = (group - place.part.first_group) * kMatvecOuts;
    return place;
  }

  // Groups and rows past the end are read as the last, and not stored.
  RB_DEVICE void point_at(i32 group) {
    const Place place = place_of(group < p_.groups ? group : p_.groups - 1);
    rows_[0] = row_of(place.part, place.out);
    if (p_.gate != 0) {
      rows_[1] = row_of(p_.parts[1], place.out);
    } else {
      rows_[1] = place.out + 1 < place.part.outs ? rows_[0] + p_.row_bytes : rows_[0];
    }
  }

  RB_DEVICE const u8* row_of(const MatvecOnePart& part, i32 out) const {
    return static_cast<const u8*>(part.weight) + out * p_.row_bytes;
  }

  RB_DEVICE void fetch(Rows& to, i32 trip) const {
#pragma unroll
    for (int o = 0; o < kMatvecOuts; ++o) format_.fetch(to[o], rows_[o], trip, lane_);
  }
  // Of the wave's trips the next that was not asked for yet, if there is one.
  RB_DEVICE void fetch_next(Rows& to) {
    if (ahead_first_ >= p_.groups) return;
    fetch(to, ahead_trip_);
    ahead_trip_ += p_.split;
    if (ahead_trip_ >= trips_) {
      ahead_trip_ = slice_;
      ahead_first_ += stride_;
      point_at(ahead_first_ + mine_);
    }
    loads_before();
  }
  // Multiplies what `now` holds, with the loads of the next trip, or of the next two, under way.
  RB_DEVICE void turn(Rows& now, Rows& then, i32 trip, float (&sums)[kMatvecOuts]) {
    if (!Format::kDeep) fetch_next(then);
    format_.multiply(now, trip, lane_, sums);
    if (Format::kDeep) fetch_next(now);
  }
  RB_DEVICE static void swap(Rows& a, Rows& b) {
#pragma unroll
    for (int o = 0; o < kMatvecOuts; ++o) {
      const typename Format::Fetched other = a[o];
      a[o] = b[o];
      b[o] = other;
    }
  }

  // `flip` changes from group to group, so that one barrier is enough.
  RB_DEVICE void finish(float (&sums)[kMatvecOuts], i32 group, bool flip) {
    RB_SHARED float partial[2][kWaves][kMatvecOuts];
#pragma unroll
    for (int o = 0; o < kMatvecOuts; ++o) sums[o] = wave_sum<kWave>(sums[o]);
    if (p_.split > 1) {
      if (lane_ < kMatvecOuts) partial[flip][wave_][lane_] = lane_ == 0 ? sums[0] : sums[1];
      barrier();
      if (slice_ != 0) return;
      for (i32 s = 1; s < p_.split; ++s) {
        for (int o = 0; o < kMatvecOuts; ++o) sums[o] += partial[flip][wave_ + s][o];
      }
    }
    if (group >= p_.groups || lane_ >= (p_.gate != 0 ? 1 : kMatvecOuts)) return;
    const Place place = place_of(group);
    if (p_.gate == 0) {
      const i32 out = place.out + lane_;
      if (out < place.part.outs) {
        format_.store(p_, place.part, out, lane_ == 0 ? sums[0] : sums[1]);
      }
      return;
    }
    const float gate = sums[0] + format_.bias(p_, place.part, place.out);
    const float up = sums[1] + format_.bias(p_, p_.parts[1], place.out);
    with_gate(p_.gate - 1,
              [&](auto act) { format_.write(p_, place.part.y, place.out, act(gate) * up); });
  }

  const MatvecOneParams& p_;
  Format format_;
  int lane_, wave_, slice_;
  i32 mine_ = 0;         // the wave's among the block's groups
  i32 stride_ = 0;       // groups from one of a wave's to its next
  i32 trips_ = 0;        // of a row
  i32 ahead_first_ = 0;  // the block's first group and the trip that is fetched next
  i32 ahead_trip_ = 0;
  const u8* rows_[kMatvecOuts];  // of that group
};

// The block's dynamic shared memory.
RB_DEVICE u8* staged() {
  RB_DYNAMIC_SHARED(bytes);
  return bytes;
}

// What formats share: results in x's type T.
template <class T>
struct OneResult {
  RB_DEVICE static float bias(const MatvecOnePart& part, i32 out) {
    return part.bias != nullptr ? load_value(static_cast<const T*>(part.bias)[out]) : 0.0f;
  }
  RB_DEVICE static void write(void* y, i32 out, float value) {
    static_cast<T*>(y)[out] = store_value<T>(value);
  }
  RB_DEVICE static void store(const MatvecOneParams& p, const MatvecOnePart& part, i32 out,
                              float sum) {
    sum += bias(part, out);
    if (p.residual != nullptr) sum += load_value(static_cast<const T*>(p.residual)[out]);
    write(part.y, out, sum);
  }
};

}  // namespace gpu
}  // namespace rbee
