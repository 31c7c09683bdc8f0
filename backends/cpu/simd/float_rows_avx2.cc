#include "backends/cpu/simd/vec_avx2.h"
// The loops build on the vectors.
#include "backends/cpu/simd/float_rows_loops.h"

namespace rbee::cpu {

constinit const FloatRows float_rows_avx2 = kFloatRows;

}  // namespace rbee::cpu
