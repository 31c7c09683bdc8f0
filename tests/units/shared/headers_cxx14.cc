// Compiled as C++14 without standard headers: the headers of backends/shared promise device
// compilers to work so.
#include "backends/shared/kv_page.h"
#include "backends/shared/math.h"
#include "backends/shared/pack_blocks.h"
#include "backends/shared/philox.h"
#include "backends/shared/quant_blocks.h"
#include "backends/shared/scalar.h"

namespace rbee {
namespace shared {

// NOLINTBEGIN(misc-use-internal-linkage): static, they would be unused functions

// One use of each formula, so that templates are checked too.
float use_formulas(float x) {
  return silu(x) + gelu(x) + gelu_erf(x) + quick_gelu(x) + sigmoid(x) + normcdf(x) + relu(x) +
         elu(x, 1.0f) + sign(x) + round_away(x);
}
float use_blocks(const BlockQ4_K& a, const BlockMXFP4& b) {
  return dequantize(a, 7) + dequantize(b, 7);
}

float use_packed(const BlockQ6_K& from, u8* row) {
  const PackedLayout at = packed_layout<BlockQ6_K>(BlockQ6_K::kElements);
  pack_group(&from, 0, row, at);
  float values[8];
  dequantize_packed8<BlockQ6_K>(row, at, 0, values);
  return values[0];
}

// NOLINTEND(misc-use-internal-linkage)

}  // namespace shared
}  // namespace rbee
