// Few rows of x on packed weights of e4m3 codes, on matrix units.
#include "backends/rocm/kernels/matvec_matrix.h"

namespace rbee {
namespace gpu {

RB_MATVEC_MATRIX(f8_g128, BlockF8_G128)

}  // namespace gpu
}  // namespace rbee
