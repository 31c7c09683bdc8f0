#pragma once
// x as the threads of a block round it: 8 neighbouring elements, a run, a thread at a time. One
// piece of code serves all types of x, with and without a norm, and all passes, since kernels of a
// layer take turns on a multiprocessor, which fetches their instructions again each time.

#include "backends/gpu/instructions.h"
#include "backends/shared/matvec_params.h"

namespace rbee {
namespace gpu {

constexpr int kXRun = 8;

// `runs` runs, 0 behind the end of x. The norm's weight is asked for at once.
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
  // what the norm has all be multiplied by: known only when all of x is, it would keep them
  // waiting.
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
    return norm ? factor_of(squares) : 1.0f;
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

  // The run in front.
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

  RB_DEVICE float factor_of(float squares) const {
    RB_SHARED float slots[kThreads / kWave];
    squares = block_sum<kWave, kThreads>(squares, slots);
    return 1.0f / sqrt(squares / static_cast<float>(p_.in) + p_.eps);
  }

  const MatvecOneParams& p_;
  i32 runs_, filled_;
  int units_of_run_;
  i32 thread_;
  Units x_ = {}, weight_ = {};
};

}  // namespace gpu
}  // namespace rbee
