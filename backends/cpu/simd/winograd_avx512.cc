#include "backends/cpu/simd/vec_avx512.h"
// The loops build on the vectors.
#include "backends/cpu/simd/winograd_loops.h"

namespace rbee::cpu {

constinit const WinogradKernels winograd_avx512 = kWinograd;

}  // namespace rbee::cpu
