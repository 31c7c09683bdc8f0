// Few rows of x on packed weights of formats of few bits, on tensor cores.
#include "backends/cuda/kernels/matvec_mma_packed.h"

namespace rbee {
namespace gpu {

RB_EACH_FEW_BITS(RB_MATVEC_MMA_PACKED)

}  // namespace gpu
}  // namespace rbee
