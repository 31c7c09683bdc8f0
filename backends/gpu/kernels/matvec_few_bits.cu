// Mat-vec on packed weights of formats of few bits.
#include "backends/gpu/kernels/packed_points.h"
// The products are templates over the pieces.
#include "backends/gpu/kernels/matvec_quant.h"

namespace rbee {
namespace gpu {

template <class Block, int kWave, int kBatch>
RB_DEVICE void matvec_few_bits(const MatvecQuantParams& p) {
  copy_book<Block>();
  matvec_quant<Block, kWave, kBatch>(p);
}

#define RB_FEW_BITS_BATCH(lanes, wave, dtype, Block, batch)                        \
  RB_KERNEL(matvec_##dtype##_b##batch##_##wave, kMatvecThreads, MatvecQuantParams, \
            (matvec_few_bits<Block, lanes, batch>(p)))
#define RB_FEW_BITS(dtype, Block)              \
  RB_WAVES(RB_FEW_BITS_BATCH, dtype, Block, 1) \
  RB_WAVES(RB_FEW_BITS_BATCH, dtype, Block, 4) \
  RB_WAVES(RB_FEW_BITS_BATCH, dtype, Block, 8)
RB_EACH_FEW_BITS(RB_FEW_BITS)

}  // namespace gpu
}  // namespace rbee
