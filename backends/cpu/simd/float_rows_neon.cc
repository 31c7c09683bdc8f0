#include "backends/cpu/simd/vec_neon.h"
// The loops build on the vectors.
#include "backends/cpu/simd/float_rows_loops.h"

namespace rbee::cpu {

constinit const FloatRows float_rows_neon = kFloatRows;

}  // namespace rbee::cpu
