// One row of x on packed weights of formats with blocks of 32, on Hopper.
#include "backends/cuda/kernels/matvec_one_tma_integers.h"

namespace rbee {
namespace gpu {

#define RB_BLOCKS_TMA(dtype, Block) RB_MATVEC_ONE_TMA(dtype, OneIntegers<Block>)
RB_EACH_SMALL_BLOCK(RB_BLOCKS_TMA)

}  // namespace gpu
}  // namespace rbee
