#include "rbee/quant/f8_rows.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/shared/quant_blocks.h"
#include "rbee/core/error.h"

namespace rbee::quant {
namespace {

constexpr int64_t kGroup = shared::BlockF8_G128::kElements;

shared::BlockF8_G128 block_of(const std::byte* codes, float scale) {
  shared::BlockF8_G128 block;
  std::memcpy(block.qs, codes, sizeof block.qs);
  const bool nan =
      std::any_of(block.qs, block.qs + kGroup, [](uint8_t code) { return (code & 0x7f) == 0x7f; });
  block.d = nan ? std::numeric_limits<float>::quiet_NaN() : scale;
  return block;
}

}  // namespace

bool fits_f8_blocks(const F8Rows& rows) {
  return rows.in % kGroup == 0 &&
         (rows.scale_columns % kGroup == 0 || rows.scale_columns >= rows.in);
}

std::vector<std::byte> f8_blocks(const F8Rows& rows) {
  check(fits_f8_blocks(rows), "f8_blocks", "rows of ", rows.in, " with a scale for ",
        rows.scale_columns, " have no scale for each ", kGroup);
  const int64_t groups = rows.in / kGroup;
  const int64_t across = (rows.in + rows.scale_columns - 1) / rows.scale_columns;
  std::vector<std::byte> out(static_cast<size_t>(rows.rows * groups) *
                             sizeof(shared::BlockF8_G128));
  std::byte* to = out.data();
  for (int64_t row = 0; row < rows.rows; ++row) {
    const int64_t down = (rows.first_row + row) / rows.scale_rows;
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t scale = down * across + group * kGroup / rows.scale_columns;
      const shared::BlockF8_G128 block =
          block_of(rows.codes.data() + row * rows.in + group * kGroup,
                   rows.scales[static_cast<size_t>(scale)]);
      std::memcpy(to, &block, sizeof block);
      to += sizeof block;
    }
  }
  return out;
}

}  // namespace rbee::quant
