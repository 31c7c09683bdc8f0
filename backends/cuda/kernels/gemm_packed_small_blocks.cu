// Many rows of x on packed weights of formats with blocks of 32, and the order of x, on Hopper.
#include "backends/cuda/kernels/gemm_packed.h"

namespace rbee {
namespace gpu {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
RB_DEVICE void arrange(const ArrangeXParams& p) {
  const i64 run = grid_thread();  // of eight places
  if (run >= p.rows * p.in / kArrangeXEach) return;
  const i64 unit = run / 16;
  const int step = static_cast<int>(run % 16) / 2, half = static_cast<int>(run % 2);
  // Pairs of elements.
  const u32* from = static_cast<const u32*>(p.x) + unit * 64 + 2 * step + half;
  uint4 places;
  places.x = from[0];
  places.y = from[16];
  places.z = from[32];
  places.w = from[48];
  static_cast<uint4*>(p.arranged)[run] = places;
}
RB_KERNEL(arrange_x, kArrangeXThreads, ArrangeXParams, arrange(p))
#endif

RB_EACH_SMALL_BLOCK(RB_GEMM_PACKED)

}  // namespace gpu
}  // namespace rbee
