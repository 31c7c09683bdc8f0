// Mat-vec of chosen experts on packed weights of formats with blocks of 256.
#include "backends/gpu/kernels/expert_matvec_quant.h"

namespace rbee {
namespace gpu {

RB_EACH_K_BLOCK(RB_EXPERT_MATVEC)

}  // namespace gpu
}  // namespace rbee
