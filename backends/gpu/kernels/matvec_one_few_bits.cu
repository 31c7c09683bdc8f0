// One row of x on packed weights of formats of few bits.
#include "backends/gpu/kernels/matvec_one_quant.h"

namespace rbee {
namespace gpu {

RB_EACH_FEW_BITS(RB_MATVEC_ONE)

}  // namespace gpu
}  // namespace rbee
