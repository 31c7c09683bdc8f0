// Few rows of x on packed weights of formats with blocks of 256, on matrix units.
#include "backends/rocm/kernels/matvec_matrix.h"

namespace rbee {
namespace gpu {

RB_EACH_K_BLOCK(RB_MATVEC_MATRIX)

}  // namespace gpu
}  // namespace rbee
