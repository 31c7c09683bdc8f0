// Few rows of x on weights of f16 and bf16, on matrix units.
#include "backends/rocm/kernels/matvec_matrix.h"

namespace rbee {
namespace gpu {

RB_MATVEC_MATRIX_PLAIN(f16)
RB_MATVEC_MATRIX_PLAIN(bf16)

}  // namespace gpu
}  // namespace rbee
