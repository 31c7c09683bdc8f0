// Mat-vec on plain weights.
#include "backends/gpu/kernels/matvec_plain.h"

namespace rbee {
namespace gpu {

template <class X, class W, int kWave, int kBatch>
RB_DEVICE void matvec(const MatvecParams& p) {
  Matvec<X, W, kWave, kBatch> work;
  work.run(p);
}

#define RB_BATCH(lanes, wave, x, X, w, W, batch)                                \
  RB_KERNEL(matvec_##x##_##w##_b##batch##_##wave, kMatvecThreads, MatvecParams, \
            (matvec<X, W, lanes, batch>(p)))
#define RB_MATVEC(x, X, w, W)       \
  RB_WAVES(RB_BATCH, x, X, w, W, 1) \
  RB_WAVES(RB_BATCH, x, X, w, W, 4) \
  RB_WAVES(RB_BATCH, x, X, w, W, 8)
#define RB_WEIGHTS(x, X)      \
  RB_MATVEC(x, X, f32, float) \
  RB_MATVEC(x, X, f16, f16)   \
  RB_MATVEC(x, X, bf16, bf16) \
  RB_MATVEC(x, X, f8e4m3, f8e4m3)
RB_EACH_FLOAT(RB_WEIGHTS)

}  // namespace gpu
}  // namespace rbee
