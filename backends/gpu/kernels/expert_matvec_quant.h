#pragma once
// Mat-vec of chosen experts on packed weights.
#include "backends/gpu/kernels/expert_matvec.h"
#include "backends/gpu/kernels/matvec_quant.h"

namespace rbee {
namespace gpu {

template <class Block, int kWave>
RB_DEVICE void expert_matvec(const ExpertMatvecParams<MatvecQuantParams>& p) {
  MatvecQuantParams one = of_choice(p);
  const i64 row = row_of_choice(p);
  one.x.quants += row * p.one.x.row_bytes;
  one.x.groups = static_cast<XGroup*>(p.one.x.groups) + row * (p.one.in / 32);
  MatvecQuant<Block, kWave, 1> work{one};
  work.run();
}

#define RB_EXPERT_WAVE(lanes, wave, dtype, Block)                                                  \
  RB_KERNEL(expert_matvec_##dtype##_##wave, kMatvecThreads, ExpertMatvecParams<MatvecQuantParams>, \
            (expert_matvec<Block, lanes>(p)))
#define RB_EXPERT_MATVEC(dtype, Block) RB_WAVES(RB_EXPERT_WAVE, dtype, Block)

}  // namespace gpu
}  // namespace rbee
