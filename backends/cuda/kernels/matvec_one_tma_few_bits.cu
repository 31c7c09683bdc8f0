// One row of x on packed weights of formats of few bits, on Hopper.
#include "backends/cuda/kernels/matvec_one_tma_integers.h"

namespace rbee {
namespace gpu {

#define RB_FEW_BITS_TMA(dtype, Block) RB_MATVEC_ONE_TMA(dtype, OneIntegers<Block>)
RB_EACH_FEW_BITS(RB_FEW_BITS_TMA)

}  // namespace gpu
}  // namespace rbee
