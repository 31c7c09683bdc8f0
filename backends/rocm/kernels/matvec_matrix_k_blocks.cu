// Few rows of x on packed weights of formats with blocks of 256, on matrix units.
#include "backends/rocm/kernels/matvec_matrix.h"

namespace rbee {
namespace gpu {

RB_MATVEC_MATRIX(q2_k, BlockQ2_K)
RB_MATVEC_MATRIX(q3_k, BlockQ3_K)
RB_MATVEC_MATRIX(q4_k, BlockQ4_K)
RB_MATVEC_MATRIX(q5_k, BlockQ5_K)
RB_MATVEC_MATRIX(q6_k, BlockQ6_K)
RB_MATVEC_MATRIX(q8_k, BlockQ8_K)
RB_MATVEC_MATRIX(iq4_xs, BlockIQ4_XS)

}  // namespace gpu
}  // namespace rbee
