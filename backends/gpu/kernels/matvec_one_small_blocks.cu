// One row of x on packed weights of formats with blocks of 32.
#include "backends/gpu/kernels/matvec_one_quant.h"

namespace rbee {
namespace gpu {

RB_MATVEC_ONE(q4_0, BlockQ4_0)
RB_MATVEC_ONE(q4_1, BlockQ4_1)
RB_MATVEC_ONE(q5_0, BlockQ5_0)
RB_MATVEC_ONE(q5_1, BlockQ5_1)
RB_MATVEC_ONE(q8_0, BlockQ8_0)
RB_MATVEC_ONE(iq4_nl, BlockIQ4_NL)
RB_MATVEC_ONE(mxfp4, BlockMXFP4)

}  // namespace gpu
}  // namespace rbee
