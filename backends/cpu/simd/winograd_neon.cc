#include "backends/cpu/simd/vec_neon.h"
// The loops build on the vectors.
#include "backends/cpu/simd/winograd_loops.h"

namespace rbee::cpu {

constinit const WinogradKernels winograd_neon = kWinograd;

}  // namespace rbee::cpu
