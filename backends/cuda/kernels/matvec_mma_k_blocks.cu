// Few rows of x on packed weights of formats with blocks of 256, on tensor cores.
#include "backends/cuda/kernels/matvec_mma_packed.h"

namespace rbee {
namespace gpu {

RB_EACH_K_BLOCK(RB_MATVEC_MMA_PACKED)

}  // namespace gpu
}  // namespace rbee
