// Products of many choices with experts' weights in f16 and bf16 on tensor cores: gemm.cu's steps
// over the rows of one expert's choices. A tile has 64 rows, since an expert seldom has more, by
// 128 outputs; reading the weights limits it.
#include "backends/cuda/kernels/mma_tiles.h"
#include "backends/gpu/kernels/expert_rows.h"

namespace rbee {
namespace gpu {

using ExpertTile = MmaTile<kExpertRows, 128, 2, 4, 4>;
static_assert(ExpertTile::kRows * 4 == ExpertTile::kThreads, "a thread copies one chunk of x");

template <class T>
RB_DEVICE void expert_gemm(const ExpertGemmParams& p) {
  using Tile = ExpertTile;
  extern __shared__ __align__(128) u8 stages[];
  ExpertPlace place;
  if (!find_place<Tile::kOuts>(p, place)) return;
  const GemmParams gemm = gemm_of(p, place, sizeof(T));
  const int line = static_cast<int>(thread_x()) / 4, chunk = static_cast<int>(thread_x()) % 4;
  const bool within = line < place.rows;
  const T* x = static_cast<const T*>(p.x) + (within ? place.row_of_x(p, line) : 0) * p.depth;
  const Operand weight = weight_of(gemm);
  const auto copy = [&](int step, u32 to) {
    const int k = step * kStepDepth + chunk * 8;
    const bool inside = within && k < p.depth;
    copy_async16(to + chunk_offset(line, chunk), inside ? x + k : x, inside ? 16 : 0);
    stage_rows<Tile::kOuts, Tile::kThreads>(to + Tile::kRows * kStepBytes, weight, place.out,
                                            step * kStepDepth);
  };
  float sums[Tile::kM][Tile::kN][4] = {};
  multiply_steps<Tile, T>(sums, shared_address(stages), p.depth, copy);
  each_pair<Tile>(0, place.out, sums, [&](int row, int out, float first, float second) {
    if (row >= place.rows) return;
    const int choice = place.choices[row];
    if (p.y_type == 0) {
      store_pair<float>(gemm, choice, out, first, second);
    } else if (p.y_type == 1) {
      store_pair<f16>(gemm, choice, out, first, second);
    } else {
      store_pair<bf16>(gemm, choice, out, first, second);
    }
  });
}

RB_KERNEL(expert_gemm_f16, ExpertTile::kThreads, ExpertGemmParams, (expert_gemm<f16>(p)))
RB_KERNEL(expert_gemm_bf16, ExpertTile::kThreads, ExpertGemmParams, (expert_gemm<bf16>(p)))

}  // namespace gpu
}  // namespace rbee
