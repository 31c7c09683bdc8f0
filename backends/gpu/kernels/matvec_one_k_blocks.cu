// One row of x on packed weights of formats with blocks of 256.
#include "backends/gpu/kernels/matvec_one_quant.h"

namespace rbee {
namespace gpu {

RB_EACH_K_BLOCK(RB_MATVEC_ONE)

}  // namespace gpu
}  // namespace rbee
