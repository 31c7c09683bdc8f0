#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "backends/api/dispatch_blocks.h"
#include "rbee/quant/encode.h"
#include "rbee/quant/quant.h"

namespace rbee::quant {
namespace {

template <class Block>
concept HasReference = requires(const float* x, Block& block) { encode_reference(x, block); };
template <class Block>
concept HasSearch = requires(const float* x, Block& block) { encode_search(x, x, block); };

// NaN becomes zero and the rest is held within +-limit.
void copy_bounded(const float* in, float* out, int n, float limit) {
  for (int i = 0; i < n; ++i) {
    const float x = in[i];
    out[i] = x != x ? 0.0f : std::clamp(x, -limit, limit);
  }
}

// Weights relative to the largest of the block, which only that block's own fit sees; a floor keeps
// columns that never saw an activation from being free to take any value.
void copy_weights(const float* importance, float* out, int n) {
  constexpr float kFloor = 1e-6f;
  const auto usable = [](float x) { return std::isfinite(x) && x > 0; };
  float largest = 0;
  for (int i = 0; i < n; ++i) {
    if (usable(importance[i])) largest = std::max(largest, importance[i]);
  }
  for (int i = 0; i < n; ++i) {
    const float weight = usable(importance[i]) ? importance[i] / largest : 0.0f;
    out[i] = largest > 0 ? std::max(weight, kFloor) : 1.0f;
  }
}

template <class Block>
void encode(const float* x, const float* importance, Block& block) {
  if constexpr (HasSearch<Block>) {
    if (importance != nullptr || !HasReference<Block>) {
      float weights[Block::kElements];
      std::fill_n(weights, Block::kElements, 1.0f);
      if (importance != nullptr) copy_weights(importance, weights, Block::kElements);
      return encode_search(x, weights, block);
    }
  }
  if constexpr (HasReference<Block>) encode_reference(x, block);
  static_assert(HasReference<Block> || HasSearch<Block>, "each type can be written");
}

}  // namespace

void quantize_row(DType dtype, const float* in, void* blocks, int64_t n, const float* importance) {
  dispatch_blocks("quantize_row", dtype, [&]<typename Block>() {
    const int64_t bytes = row_bytes(dtype, n);
    auto* to = static_cast<std::byte*>(blocks);
    float x[Block::kElements];
    for (int64_t at = 0; at < bytes; at += int64_t{sizeof(Block)}) {
      copy_bounded(in, x, Block::kElements, kLargest<Block>);
      Block block{};
      encode(x, importance, block);
      std::memcpy(to + at, &block, sizeof(Block));
      in += Block::kElements;
      if (importance != nullptr) importance += Block::kElements;
    }
  });
}

}  // namespace rbee::quant
