// Mat-vec of chosen experts on packed weights of formats of few bits.
#include "backends/gpu/kernels/expert_matvec_quant.h"

namespace rbee {
namespace gpu {

RB_EACH_FEW_BITS(RB_EXPERT_MATVEC)

}  // namespace gpu
}  // namespace rbee
