// One row of x on packed weights of formats with blocks of 32.
#include "backends/gpu/kernels/matvec_one_quant.h"

namespace rbee {
namespace gpu {

RB_EACH_SMALL_BLOCK(RB_MATVEC_ONE)

}  // namespace gpu
}  // namespace rbee
