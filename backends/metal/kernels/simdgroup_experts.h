#pragma once
// y = x * weight^T + bias of many choices: see simdgroup_product.h. The rows of a tile are choices
// of one expert, found in the groups that expert_groups() made.

#include "backends/gpu/kernels/expert_rows.h"
#include "backends/metal/kernels/simdgroup_product.h"

namespace rbee {
namespace gpu {

// The rows of x of an expert's choices.
template <class T>
struct ChosenRuns {
  const T* x;
  const i32* choices;
  i64 depth;
  i32 each;
  RB_DEVICE bool across() const { return false; }
  template <class S>
  RB_DEVICE void read(i64 line, i64 k, RunWords<S>& to) const {
    read_plain(x + choices[line] / each * depth + k, to);
  }
};

// X: the type of x, bias and y; make_weight(data): the runs of the expert's weight at `data`.
template <class S, class X, class MakeWeight>
RB_DEVICE void simdgroup_experts(const ExpertTilesParams& p, const MakeWeight& make_weight) {
  const i64 across = (p.outs + kProductOuts - 1) / kProductOuts;
  const i64 tiles = p.tiles[p.experts] * across;
  for (i64 tile = block_x(); tile < tiles; tile += blocks_x()) {
    const i64 down = tile / across;
    const i32 expert = expert_of(p.tiles, p.experts, down);
    const i32* const choices = p.order + p.starts[expert];
    const X* const biases = static_cast<const X*>(p.bias);
    const X* const bias = biases == nullptr ? biases : biases + expert * p.outs;
    const ProductPlace place{static_cast<int>(down - p.tiles[expert]) * kExpertRows,
                             static_cast<int>(tile % across) * kProductOuts,
                             p.starts[expert + 1] - p.starts[expert], static_cast<int>(p.outs),
                             static_cast<int>(p.depth)};
    simdgroup_product<S, kExpertRows>(
        place, ChosenRuns<X>{static_cast<const X*>(p.x), choices, p.depth, p.each},
        make_weight(static_cast<const u8*>(p.weight) + expert * p.expert_bytes),
        [&](i64 row, i64 out, float sum) {
          if (bias != nullptr) sum += load_value(bias[out]);
          static_cast<X*>(p.y)[choices[row] * p.outs + out] = store_value<X>(sum);
        });
    barrier();
  }
}

template <class S, class X, class W>
RB_DEVICE void experts_plain(const ExpertTilesParams& p) {
  simdgroup_experts<S, X>(
      p, [&](const u8* data) { return PlainRuns<W>{reinterpret_cast<const W*>(data), p.depth}; });
}
template <class S, class X, class Block>
RB_DEVICE void experts_packed(const ExpertTilesParams& p) {
  simdgroup_experts<S, X>(
      p, [&](const u8* data) { return PackedRuns<Block>{data, packed_layout<Block>(p.depth)}; });
}

#define RB_SIMDGROUP_EXPERTS(body, S, x, X, weight, W) \
  RB_KERNEL(expert_simdgroup_##x##_##weight, kProductThreads, ExpertTilesParams, (body<S, X, W>(p)))
#define RB_PACKED_EXPERTS(weight, Block)                                 \
  RB_SIMDGROUP_EXPERTS(experts_packed, float, f32, float, weight, Block) \
  RB_SIMDGROUP_EXPERTS(experts_packed, f16, f16, f16, weight, Block)     \
  RB_SIMDGROUP_EXPERTS(experts_packed, float, bf16, bf16, weight, Block)

}  // namespace gpu
}  // namespace rbee
