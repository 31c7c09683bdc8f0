// Few rows of x on packed weights of formats with blocks of 32, on matrix units.
#include "backends/rocm/kernels/matvec_matrix.h"

namespace rbee {
namespace gpu {

RB_MATVEC_MATRIX(q4_0, BlockQ4_0)
RB_MATVEC_MATRIX(q4_1, BlockQ4_1)
RB_MATVEC_MATRIX(q5_0, BlockQ5_0)
RB_MATVEC_MATRIX(q5_1, BlockQ5_1)
RB_MATVEC_MATRIX(q8_0, BlockQ8_0)
RB_MATVEC_MATRIX(iq4_nl, BlockIQ4_NL)
RB_MATVEC_MATRIX(mxfp4, BlockMXFP4)

}  // namespace gpu
}  // namespace rbee
