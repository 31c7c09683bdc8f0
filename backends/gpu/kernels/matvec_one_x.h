#pragma once
// x as the threads of a block round it: 8 neighbouring elements, a run, a thread at a time. One
// piece of code serves all types of x, with and without a norm, and all passes. Less code matters,
// because kernels of a layer alternate on a multiprocessor, which fetches their instructions again
// each time.

#include "backends/gpu/instructions.h"
#include "backends/shared/matvec_params.h"

namespace rbee {
namespace gpu {

constexpr int kXRun = 8;

// `runs` runs, 0 past the end of x. The constructor asks for the norm's weight.
template <int kWave, int kThreads>
class XRuns {
 public:
  RB_DEVICE XRuns(const MatvecOneParams& p, i32 runs)
      : p_(p),
        runs_(runs),
        filled_(p.in / kXRun),
        units_of_run_(p.x_type == 0 ? 2 : 1),
        thread_(static_cast<i32>(thread_x())) {
    if (p.norm_weight != nullptr) load(p.norm_weight, 0, weight_);
  }

  // Asks for x.
  RB_DEVICE void ask() { load(p_.x, 0, x_); }

  // put(run, values) for each run of x, or of x times the norm's weight. The threads of a wave call
  // it together, for neighbouring runs from a multiple of kWave on, also past the last. Returns
  // the sum of the squares that this thread saw, see NormSquares.
  template <class Put>
  RB_DEVICE float each(const Put& put) {
    const bool norm = p_.norm_weight != nullptr;
    float squares = 0;
    int left = kUnits;
#pragma unroll 1
    for (i32 first = 0; first < runs_; first += kThreads) {
      if (left == 0) {
        load(p_.x, first, x_);
        if (norm) load(p_.norm_weight, first, weight_);
        left = kUnits;
      }
      float values[kXRun];
      unpack(x_, values);
      if (norm) {
        float factors[kXRun];
        unpack(weight_, factors);
#pragma unroll
        for (int i = 0; i < kXRun; ++i) {
          squares = fma(values[i], values[i], squares);
          values[i] *= factors[i];
        }
      }
      put(first + thread_, values);
      move_on(x_);
      move_on(weight_);
      left -= units_of_run_;
    }
    return squares;
  }

 private:
  static constexpr int kUnits = 4;  // of 16 bytes, under way
  struct alignas(16) Unit {
    u32 words[4];
  };
  using Units = Unit[kUnits];

  RB_DEVICE void load(const void* from, i32 first, Units& to) const {
    const bool pairs = units_of_run_ == 2;
#pragma unroll
    for (int k = 0; k < kUnits; ++k) {
      const i32 run = first + (pairs ? k / 2 : k) * kThreads + thread_;
      const i32 unit = pairs ? 2 * run + k % 2 : run;
      to[k] = Unit{};
      if (run < filled_) to[k] = static_cast<const Unit*>(from)[unit];
    }
  }

  // The run before.
  RB_DEVICE void unpack(const Units& units, float (&values)[kXRun]) const {
    if (p_.x_type == 0) {
#pragma unroll
      for (int i = 0; i < kXRun; ++i) values[i] = float_of_bits(units[i / 4].words[i % 4]);
    } else if (p_.x_type == 1) {
#pragma unroll
      for (int i = 0; i < kXRun; ++i) values[i] = load_value(element<f16>(units[0].words, i));
    } else {
#pragma unroll
      for (int i = 0; i < kXRun; ++i) values[i] = load_value(element<bf16>(units[0].words, i));
    }
  }
  RB_DEVICE void move_on(Units& units) const {
    if (units_of_run_ == 2) {
      units[0] = units[2];
      units[1] = units[3];
    } else {
#pragma unroll
      for (int k = 0; k + 1 < kUnits; ++k) units[k] = units[k + 1];
    }
  }

  const MatvecOneParams& p_;
  i32 runs_, filled_;
  int units_of_run_;
  i32 thread_;
  Units x_ = {}, weight_ = {};
};

// Sums of squares of XRuns, one for each of kThreads threads. After a barrier, every thread
// computes the norm's factor from them. It is applied to results, because products would have to
// wait for it.
template <int kWave, int kThreads>
class NormSquares {
 public:
  RB_DEVICE static void leave(const MatvecOneParams& p, float squares) {
    if (p.norm_weight == nullptr) return;
    squares = wave_sum<kWave>(squares);
    if (thread_x() % kWave == 0) slots()[thread_x() / kWave] = squares;
  }
  // 1 without a norm.
  RB_DEVICE static float factor(const MatvecOneParams& p) {
    if (p.norm_weight == nullptr) return 1;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kThreads / kWave; ++i) sum += slots()[i];
    return 1.0f / sqrt(sum / static_cast<float>(p.in) + p.eps);
  }

 private:
  RB_DEVICE static float* slots() {
    RB_SHARED float of_waves[kThreads / kWave];
    return of_waves;
  }
};

// 32 inputs are d * q. The sums are d times those of all q, of the first and of the last 16.
struct alignas(16) OneGroup {
  float d, total, halves[2];
};

// A run as int8: d = max |x| / 127 of the four runs of a group, which neighbouring lanes have.
struct alignas(8) RoundedRun {
  u32 words[2];
};
// group: of all four; only the first of their lanes has it.
template <int kWave>
RB_DEVICE RoundedRun round_run(const float (&values)[kXRun], OneGroup& group) {
  // Compared as bits, NaN is the largest, so d becomes NaN and with it the product.
  u32 largest = 0;
#pragma unroll
  for (int i = 0; i < kXRun; ++i) {
    largest = Max{}(largest, bits_of_float(values[i]) & 0x7fffffffu);
  }
  largest = wave_max<kWave, 4>(largest);
  const float d = float_of_bits(largest) * (1.0f / 127.0f);
  const float inverse = d >= 1e-37f ? fast_reciprocal(d) : 0.0f;
  // Added, it leaves the nearest integer in the low bits.
  constexpr float kRounds = 12582912.0f;  // 3 * 2^22
  RoundedRun run;
  i32 sum = 0;
#pragma unroll
  for (int w = 0; w < 2; ++w) {
    u32 word = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const u32 bits = bits_of_float(fma(values[4 * w + i], inverse, kRounds));
      word |= (bits & 255u) << (8 * i);
    }
    sum = dot4(word, 0x01010101u, sum);
    run.words[w] = word;
  }
  const i32 half = sum + shuffle_xor<kWave>(sum, 1);
  const i32 other = shuffle_xor<kWave>(half, 2);
  group.d = d;
  group.total = d * static_cast<float>(half + other);
  group.halves[0] = d * static_cast<float>(half);
  group.halves[1] = d * static_cast<float>(other);
  return run;
}

}  // namespace gpu
}  // namespace rbee
