// Mat-vec on packed weights of formats of few bits.
#include "backends/gpu/kernels/matvec_quant.h"

namespace rbee {
namespace gpu {

RB_EACH_FEW_BITS(RB_MATVEC)

}  // namespace gpu
}  // namespace rbee
