// Mat-vec on packed weights of e4m3 codes.
#include "backends/gpu/kernels/matvec_quant.h"

namespace rbee {
namespace gpu {

RB_MATVEC(f8_g128, BlockF8_G128)

}  // namespace gpu
}  // namespace rbee
