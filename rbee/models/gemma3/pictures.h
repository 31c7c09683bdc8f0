#pragma once
// Gemma 3's vision encoder (Gemma Team 2025, section 2.1): a SigLIP tower (Zhai et al. 2023) over
// patches with learned positions, then the mean of each square of patches, a norm and a projection.

#include <memory>
#include <vector>

#include "rbee/models/common_config.h"
#include "rbee/models/picture_encoder.h"
#include "rbee/nn/conv2d.h"
#include "rbee/nn/linear.h"
#include "rbee/nn/norm.h"

namespace rbee::models {

struct Gemma3PictureConfig {
  int64_t side = 0;    // pixels of a picture
  int64_t patch = 0;   // pixels of a patch's side
  int64_t pooled = 0;  // patches along a pooled square's side
  int64_t width = 0;   // of the tower
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t ffn_width = 0;
  float norm_eps = 0;
  int64_t text_width = 0;

  int64_t patches() const { return side / patch; }  // along a side
  int64_t rows() const { return patches() / pooled; }
};

class Gemma3Pictures final : public PictureEncoder {
 public:
  // checkpoint: a Hugging Face folder with text and tower, or an mmproj file.
  Gemma3Pictures(const io::Checkpoint& checkpoint, const LoadOptions& options, int64_t text_width);
  ~Gemma3Pictures() override;

  int64_t side() const override { return config_.side; }
  int64_t tokens() const override { return config_.rows() * config_.rows(); }
  int64_t stages() const override { return config_.layers; }
  Tensor stage(int64_t index, const Tensor& x) const override;
  double multiplications() const override;
  // The tower's states after its last norm: (patches, width).
  Tensor states(const Tensor& picture) const;

  int64_t weight_bytes() const override { return figures_.resident_bytes; }
  int64_t parameters() const override { return figures_.parameters; }

 private:
  class Layer;
  Tensor embed(const Tensor& picture) const;
  Tensor project(const Tensor& states) const;

  Gemma3PictureConfig config_;
  DType activations_;
  nn::Conv2d patches_;
  Tensor positions_;  // (patches, width)
  std::vector<Layer> layers_;
  nn::LayerNorm final_norm_;
  nn::RmsNorm row_norm_;
  Tensor projection_;  // (text_width, width), packed
  nn::WeightFigures figures_;
};

// The tower of a Hugging Face checkpoint or of options.pictures; null if there is none. Throws as
// load_language_model() does.
std::unique_ptr<const PictureEncoder> load_gemma3_pictures(const io::Checkpoint& checkpoint,
                                                           const LoadOptions& options,
                                                           int64_t text_width);

}  // namespace rbee::models
