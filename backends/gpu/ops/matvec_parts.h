#pragma once
// Linear layers for few rows: how waves share the rows of weights. One launch takes the parts
// with weights of one type.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

#include "backends/api/args_matmul.h"
#include "backends/api/dispatch_blocks.h"
#include "backends/gpu/launch.h"
#include "backends/gpu/rows.h"
#include "backends/shared/matvec_params.h"
#include "backends/shared/packed_weight.h"

namespace rbee::gpu {

// Waves of a multiprocessor that keep its memory busy, each with 4 KiB of loads under way.
inline constexpr int64_t kBusyWaves = 16;

// Shared memory for a format's code book in kernels.
inline int64_t book_bytes(DType weight) {
  int64_t bytes = 0;
  if (!is_quantized(weight)) return bytes;
  dispatch_blocks("linear", weight, [&]<typename Block>() { bytes = shared::book_bytes<Block>(); });
  return bytes;
}

// Kernels of packed weights are in families by how their codes are multiplied.
struct PackedFamilies {
  const char* small_blocks;  // of 32
  const char* k_blocks;      // of 256
  const char* e4m3;
  const char* few_bits;

  const char* of(DType weight) const {
    if (weight == DType::f8_g128) return e4m3;
    if (has_few_bits(weight)) return few_bits;
    return info(weight).block_size == 32 ? small_blocks : k_blocks;
  }
};

struct MatvecTiling {
  int64_t outs = 0;   // rows of a wave
  int64_t waves = 0;  // of a block of threads
  int64_t split = 1;  // waves that share rows
  int64_t outs_of_block() const { return waves / split * outs; }
};

inline int64_t outs_of(const LinearArgs& args, DType weight) {
  int64_t outs = 0;
  for (const LinearPart& part : args.parts) {
    if (part.weight.dtype == weight) outs += part.weight.size(0);
  }
  return outs;
}

// run(type), once for each type of the parts' weights.
template <typename Run>
void each_weight_type(std::span<const LinearPart> parts, const Run& run) {
  for (size_t i = 0; i < parts.size(); ++i) {
    const DType weight = parts[i].weight.dtype;
    const auto earlier = parts.first(i);
    const bool done = std::any_of(earlier.begin(), earlier.end(), [&](const LinearPart& part) {
      return part.weight.dtype == weight;
    });
    if (!done) run(weight);
  }
}

// The parts with weights of one type, in launches of as many as Params holds.
template <typename Params, typename Launch>
void launch_parts(const LinearArgs& args, DType weight, const MatvecTiling& tiling, Params params,
                  const Launch& start) {
  uint32_t blocks = 0;
  const auto flush = [&] {
    if (params.part_count > 0) start(params, blocks);
    params.part_count = 0;
    blocks = 0;
  };
  for (const LinearPart& part : args.parts) {
    const int64_t outs = part.weight.size(0);
    if (part.weight.dtype != weight || outs == 0) continue;
    if (params.part_count == static_cast<int32_t>(std::size(params.parts))) flush();
    params.parts[params.part_count++] = {.weight = part.weight.data,
                                         .bias = part.bias.data,
                                         .y = part.y.data,
                                         .outs = outs,
                                         .first_block = blocks};
    blocks += blocks_for(outs, tiling.outs_of_block());
  }
  flush();
}

}  // namespace rbee::gpu
