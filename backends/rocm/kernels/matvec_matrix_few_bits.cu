// Few rows of x on packed weights of formats of few bits, on matrix units.
#include "backends/rocm/kernels/matvec_matrix.h"

namespace rbee {
namespace gpu {

RB_EACH_FEW_BITS(RB_MATVEC_MATRIX)

}  // namespace gpu
}  // namespace rbee
