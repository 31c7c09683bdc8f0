#include "rbee/quant/nvfp4_rows.h"

#include <cstring>

#include "rbee/quant/put.h"

namespace rbee::quant {

void nvfp4_blocks(const Nvfp4Rows& rows, std::byte* to) {
  constexpr size_t kGroups = 4, kBytes = 32;  // of a block
  for (size_t block = 0; block * kBytes < rows.codes.size(); ++block) {
    BlockNVFP4 made{};
    std::memcpy(made.d, rows.scales.data() + block * kGroups, kGroups);
    for (int i = 0; i < BlockNVFP4::kElements; ++i) {
      const auto pair =
          std::to_integer<int>(rows.codes[block * kBytes + static_cast<size_t>(i / 2)]);
      put_quant(made, i, i % 2 == 0 ? pair & 15 : pair >> 4);
    }
    std::memcpy(to + block * sizeof made, &made, sizeof made);
  }
}

}  // namespace rbee::quant
