// Few rows of x on packed weights of e4m3 codes, on tensor cores.
#include "backends/cuda/kernels/matvec_mma_packed.h"

namespace rbee {
namespace gpu {

RB_MATVEC_MMA_PACKED(f8_g128, BlockF8_G128)

}  // namespace gpu
}  // namespace rbee
