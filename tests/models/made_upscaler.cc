#include "tests/models/made_upscaler.h"

#include "rbee/core/cat.h"

namespace rbee::test {
namespace {

struct Conv {
  std::string name, published, old;
  int64_t in, out;
};

std::vector<Conv> convs_of(const models::UpscalerShape& shape) {
  const int64_t width = shape.width, ups = shape.doublings;
  std::vector<Conv> out{
      {"conv_first", "conv_first", "model.0", 3 * shape.unshuffle * shape.unshuffle, width}};
  for (int64_t i = 0; i < shape.blocks; ++i) {
    for (int dense = 1; dense <= 3; ++dense) {
      for (int k = 1; k <= 5; ++k) {
        const std::string tail = cat(dense, ".conv", k);
        out.push_back({cat("body.", i, ".rdb", tail), cat("RRDB_trunk.", i, ".RDB", tail),
                       cat("model.1.sub.", i, ".RDB", tail, ".0"), width + (k - 1) * shape.growth,
                       k < 5 ? shape.growth : width});
      }
    }
  }
  out.push_back({"conv_body", "trunk_conv", cat("model.1.sub.", shape.blocks), width, width});
  for (int64_t i = 0; i < ups; ++i) {
    out.push_back(
        {cat("conv_up", i + 1), cat("upconv", i + 1), cat("model.", 3 + 3 * i), width, width});
  }
  out.push_back({"conv_hr", "HRconv", cat("model.", 2 + 3 * ups), width, width});
  out.push_back({"conv_last", "conv_last", cat("model.", 4 + 3 * ups), width, 3});
  return out;
}

}  // namespace

std::vector<MadeTensor> made_upscaler(const models::UpscalerShape& shape, UpscalerNames names) {
  std::vector<MadeTensor> out;
  for (const Conv& conv : convs_of(shape)) {
    const std::string& shown = names == UpscalerNames::current     ? conv.name
                               : names == UpscalerNames::published ? conv.published
                                                                   : conv.old;
    const Shape weight{conv.out, conv.in, 3, 3}, bias{conv.out};
    out.push_back({shown + ".weight", weight, made_weights(conv.name + ".weight", weight)});
    out.push_back({shown + ".bias", bias, made_weights(conv.name + ".bias", bias)});
  }
  return out;
}

}  // namespace rbee::test
