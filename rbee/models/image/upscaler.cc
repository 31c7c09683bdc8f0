#include "rbee/models/image/upscaler.h"

#include "rbee/models/image/compact_net.h"
#include "rbee/models/image/rrdb_net.h"

namespace rbee::models {
namespace {

std::unique_ptr<Upscaler> made(const nn::WeightScope& scope, const RrdbShape& shape) {
  return std::make_unique<RrdbNet>(scope, shape);
}

std::unique_ptr<Upscaler> made(const nn::WeightScope& scope, const CompactShape& shape) {
  return std::make_unique<CompactNet>(scope, shape);
}

}  // namespace

std::unique_ptr<Upscaler> load_upscaler(const std::filesystem::path& path, Device& device,
                                        DType activations) {
  const UpscalerFile file = read_upscaler_file(path);
  const nn::WeightScope scope(file.weights,
                              {.device = &device, .own_names = true, .activations = activations});
  auto out = std::visit([&](const auto& shape) { return made(scope, shape); }, file.shape);
  scope.finish();
  return out;
}

}  // namespace rbee::models
