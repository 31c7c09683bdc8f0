// Products of many choices with experts' weights in f16 and bf16 on AMD's matrix instructions, or
// dot products if a target has none: gemm_steps.h or gemm_direct.h over the rows of one expert's
// choices, 64 rows by 64 outputs.
#include "backends/gpu/kernels/expert_rows.h"
#include "backends/rocm/kernels/gemm_direct.h"
#include "backends/rocm/kernels/gemm_steps.h"

namespace rbee {
namespace gpu {

using ExpertTile = SmallTile;
static_assert(ExpertTile::kLines == kExpertRows, "tiles are counted by expert_groups()");

template <class Y>
RB_DEVICE void store_with_bias(Y* y, const void* bias, int out, float sum) {
  if (bias != nullptr) sum += load_value(static_cast<const Y*>(bias)[out]);
  *y = store_value<Y>(sum);
}

template <class T>
RB_DEVICE void expert_gemm(const ExpertGemmParams& p) {
  using Tile = ExpertTile;
  ExpertPlace place;
  if (!find_place<Tile::kLines>(p, place)) return;
  const GemmParams gemm = gemm_of(p, place, sizeof(T));
  typename Tile::Sums sums = {};
#if defined(__gfx950__)
  const auto row_of = [&](int line) { return place.row_of_x(p, line); };
  const DirectOperand x(p.x, place.rows, p.depth, row_of);
  const DirectOperand weight(weight_of(gemm), place.out);
  copy_and_multiply<Tile, T>(sums, x, weight, p.depth);
#else
  const int line = static_cast<int>(thread_x()) / 2;
  const bool within = line < place.rows;
  const i64 row = within ? place.row_of_x(p, line) : 0;
  OperandStage<T> x(static_cast<const T*>(p.x) + row * p.depth, within, p.depth);
  OperandStage<T> weight(weight_of(gemm), place.out);
  multiply_steps<Tile, T>(sums, x, weight, p.depth);
#endif
  each_result<Tile>(TilePlace{0, place.out}, sums, [&](int row, int out, float sum) {
    if (row >= place.rows || out >= p.outs) return;
    const i64 at = place.choices[row] * gemm.y_row + out;
    if (p.y_type == 0) {
      store_with_bias(static_cast<float*>(p.y) + at, gemm.bias, out, sum);
    } else if (p.y_type == 1) {
      store_with_bias(static_cast<f16*>(p.y) + at, gemm.bias, out, sum);
    } else {
      store_with_bias(static_cast<bf16*>(p.y) + at, gemm.bias, out, sum);
    }
  });
}

RB_KERNEL(expert_gemm_f16, ExpertTile::kThreads, ExpertGemmParams, (expert_gemm<f16>(p)))
RB_KERNEL(expert_gemm_bf16, ExpertTile::kThreads, ExpertGemmParams, (expert_gemm<bf16>(p)))

}  // namespace gpu
}  // namespace rbee
