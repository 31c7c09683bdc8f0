// Mat-vec of chosen experts on packed weights of formats of few bits.
#include "backends/gpu/kernels/packed_points.h"
// The products are templates over the pieces.
#include "backends/gpu/kernels/expert_matvec_quant.h"

namespace rbee {
namespace gpu {

template <class Block, int kWave>
RB_DEVICE void expert_few_bits(const ExpertMatvecParams<MatvecQuantParams>& p) {
  copy_book<Block>();
  expert_matvec<Block, kWave>(p);
}

#define RB_EXPERT_FEW_BITS_WAVE(lanes, wave, dtype, Block)                                         \
  RB_KERNEL(expert_matvec_##dtype##_##wave, kMatvecThreads, ExpertMatvecParams<MatvecQuantParams>, \
            (expert_few_bits<Block, lanes>(p)))
#define RB_EXPERT_FEW_BITS(dtype, Block) RB_WAVES(RB_EXPERT_FEW_BITS_WAVE, dtype, Block)
RB_EACH_FEW_BITS(RB_EXPERT_FEW_BITS)

}  // namespace gpu
}  // namespace rbee
