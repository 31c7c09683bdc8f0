// One row of x on packed weights of e4m3 codes.
#include "backends/gpu/kernels/matvec_one_quant.h"

namespace rbee {
namespace gpu {

RB_MATVEC_ONE(f8_g128, BlockF8_G128)

}  // namespace gpu
}  // namespace rbee
