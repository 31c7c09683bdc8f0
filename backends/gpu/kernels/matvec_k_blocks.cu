// Mat-vec on packed weights of formats with blocks of 256.
#include "backends/gpu/kernels/matvec_quant.h"

namespace rbee {
namespace gpu {

RB_EACH_K_BLOCK(RB_MATVEC)

}  // namespace gpu
}  // namespace rbee
