#include "tests/checkpoints/made_upscaler.h"

#include "rbee/core/cat.h"

namespace rbee::test {

std::vector<MadeTensor> made_upscaler(const models::RrdbShape& shape) {
  std::vector<MadeTensor> out;
  const auto conv = [&](const std::string& name, int64_t in, int64_t made) {
    const Shape weight{made, in, 3, 3}, bias{made};
    out.push_back({name + ".weight", weight, made_weights(name + ".weight", weight)});
    out.push_back({name + ".bias", bias, made_weights(name + ".bias", bias)});
  };
  const int64_t width = shape.width, growth = shape.growth;
  conv("conv_first", 3 * shape.unshuffle * shape.unshuffle, width);
  for (int64_t i = 0; i < shape.blocks * 3; ++i) {
    for (int64_t k = 1; k <= 5; ++k) {
      conv(cat("body.", i / 3, ".rdb", i % 3 + 1, ".conv", k), width + (k - 1) * growth,
           k < 5 ? growth : width);
    }
  }
  conv("conv_body", width, width);
  for (int64_t i = 1; i <= shape.doublings; ++i) conv(cat("conv_up", i), width, width);
  conv("conv_hr", width, width);
  conv("conv_last", width, 3);
  return out;
}

}  // namespace rbee::test
