#pragma once
// Rotary position embedding (Su et al. 2021) with the context extensions in use.

#include <cstdint>
#include <optional>
#include <vector>

#include "rbee/ops/rope.h"
#include "rbee/tensor/tensor.h"

namespace rbee::nn {

enum class RopeScaling : uint8_t {
  none,
  linear,    // position interpolation (Chen et al. 2023): frequencies / factor
  dynamic,   // NTK-aware base for the prepared context, if it exceeds the trained one
  yarn,      // Peng et al. 2023, section 3.2 to 3.4
  llama3,    // Llama 3.1: long wavelengths / factor, short ones kept, a ramp between
  longrope,  // Ding et al. 2024: one divisor per frequency, a short and a long set
};

struct RopeOptions {
  int64_t rotary_dim = 0;  // leading elements of a head that are rotated; even
  double base = 10000;
  RopeLayout layout = RopeLayout::half;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;                       // linear, dynamic, yarn, llama3: context extension
  int64_t trained_positions = 0;           // dynamic: max_position_embeddings
  int64_t original_positions = 0;          // yarn, llama3, longrope: positions before the extension
  std::optional<double> attention_factor;  // yarn, longrope: scales cos and sin; absent = formula
  double beta_fast = 32, beta_slow = 1;    // yarn: rotations that bound the ramp
  double mscale = 0, mscale_all_dim = 0;   // yarn: ratio of two attention factors; 0 = off
  bool truncate = true;                    // yarn: ramp bounds are whole numbers
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3: original_positions / wavelength
  std::vector<double> short_factors, long_factors;   // longrope: (rotary_dim / 2) divisors
  std::vector<double> frequency_divisors;            // (rotary_dim / 2), any scaling; empty = none
  // Ministral 3: append() multiplies q of position p by
  // 1 + query_growth * ln(1 + floor(p / original_positions)); 0 = off.
  double query_growth = 0;
};

struct RopeFrequencies {
  std::vector<double> radians;  // per position, (rotary_dim / 2)
  double magnitude = 1;         // of the rotation: multiplies cos and sin
};

// Frequencies for a context of `positions`. Throws invalid_argument naming the option at fault.
RopeFrequencies rope_frequencies(const RopeOptions& options, int64_t positions);

class Rope {
 public:
  Rope() = default;
  // Prepares the tables for positions 0 ... positions - 1. Throws what rope_frequencies() does, and
  // out_of_memory if the device has no room for them.
  Rope(const RopeOptions& options, int64_t positions, Device& device);

  // x: (tokens, heads, head_dim), positions: (tokens) i32
  Tensor operator()(const Tensor& x, const Tensor& positions) const {
    return rope(x, cos_, sin_, positions, layout_);
  }
  // Rotates q and k, (tokens, heads, head_dim) each, and writes the keys and v into the caches at
  // `slots`; gives the rotated q.
  Tensor append(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& positions,
                const Tensor& slots, Tensor& k_cache, Tensor& v_cache) const {
    return grown(rope_append_({q, k, v, cos_, sin_, positions, slots, k_cache, v_cache, layout_}),
                 positions);
  }
  // The same for linear layers' results.
  struct Projections {
    const LinearInput& input;
    const LinearWeights &q, &k, &v;
    int64_t heads = 0;
  };
  Tensor append(const Projections& of, const Tensor& positions, const Tensor& slots,
                Tensor& k_cache, Tensor& v_cache) const {
    return grown(qkv_append_({of.input, of.q, of.k, of.v, of.heads, cos_, sin_, positions, slots,
                              k_cache, v_cache, layout_}),
                 positions);
  }
  RopeLayout layout() const { return layout_; }
  int64_t positions() const { return cos_.dim(0); }

 private:
  Tensor grown(const Tensor& q, const Tensor& positions) const;

  Tensor cos_, sin_;     // (positions, rotary_dim / 2) f32
  Tensor query_growth_;  // (positions) f32; undefined: none
  RopeLayout layout_ = RopeLayout::half;
};

}  // namespace rbee::nn
