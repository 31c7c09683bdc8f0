#pragma once
// Diffusion transformers (Stable Diffusion 3's, FLUX's and Z-Image's) in single files, alone or
// with other parts of the model, as Stability AI, Black Forest Labs, ComfyUI and
// stable-diffusion.cpp write them.

#include <optional>

#include "rbee/models/image/model_files.h"

namespace rbee::models {

struct TransformerLayout {
  ImageFamily family = ImageFamily::sd3;
  std::string prefix;  // of the names: "model.diffusion_model." or none
};

// Nothing if the file has no such denoiser.
std::optional<TransformerLayout> find_transformer(const io::Checkpoint& file);

// Throws not_found naming a missing tensor that the settings need, and invalid_argument naming one
// whose rows do not hold its layers.
ModelPart read_transformer(const io::Checkpoint& file, const TransformerLayout& layout,
                           const std::string& source);

// The noise schedule that such models were trained with.
SchedulerSettings transformer_scheduler(ImageFamily family, const ModelPart& transformer);

}  // namespace rbee::models
