// Mat-vec of chosen experts on plain weights.
#include "backends/gpu/kernels/expert_matvec.h"

#include "backends/gpu/kernels/matvec_plain.h"

namespace rbee {
namespace gpu {

template <class X, class W, int kWave>
RB_DEVICE void expert_matvec(const ExpertMatvecParams<MatvecParams>& p) {
  MatvecParams one = of_choice(p);
  one.x = static_cast<const X*>(p.one.x) + row_of_choice(p) * p.one.in;
  Matvec<X, W, kWave, 1> work;
  work.run(one);
}

#define RB_EXPERT(lanes, wave, x, X, w, W)                                                      \
  RB_KERNEL(expert_matvec_##x##_##w##_##wave, kMatvecThreads, ExpertMatvecParams<MatvecParams>, \
            (expert_matvec<X, W, lanes>(p)))
#define RB_WEIGHTS(x, X)                \
  RB_WAVES(RB_EXPERT, x, X, f32, float) \
  RB_WAVES(RB_EXPERT, x, X, f16, f16)   \
  RB_WAVES(RB_EXPERT, x, X, bf16, bf16)
RB_EACH_FLOAT(RB_WEIGHTS)

}  // namespace gpu
}  // namespace rbee
