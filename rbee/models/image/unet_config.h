#pragma once
// Settings of diffusers' UNet2DConditionModel (Rombach et al. 2022, section 3.3; Podell et al.
// 2023, section 2 for SDXL).

#include <cstdint>
#include <vector>

#include "rbee/io/json_config.h"

namespace rbee::models {

// One resolution of the down or the up path.
struct UnetLevel {
  int64_t channels = 0;
  bool attention = false;  // transformers after the resnets
  int64_t heads = 0;
  int64_t context_width = 0;    // of the prompt's states
  std::vector<int64_t> depths;  // transformer blocks after each resnet
};

// A ControlNet has only the down path and the middle.
enum class UnetPaths : uint8_t { both, down };

struct UnetConfig {
  int64_t in_channels = 4;
  int64_t out_channels = 4;
  int64_t sample_size = 0;      // latent height and width in training; 0 = unknown
  std::vector<UnetLevel> down;  // from the full size to the smallest
  std::vector<UnetLevel> up;    // back again; empty for a ControlNet
  bool has_middle = true;
  int64_t middle_depth = 0;  // transformer blocks of the middle; 0: only one resnet
  int64_t groups = 32;
  float eps = 1e-5f;
  bool sin_first = false;  // flip_sin_to_cos is false
  double frequency_shift = 0;
  int64_t guidance_width = 0;  // time_cond_proj_dim; 0 = no distilled guidance
  // addition_embed_type text_time: after the pooled prompt, sinusoids of `size_width` numbers for
  // each size.
  int64_t size_width = 0;   // 0 = no such vector
  int64_t added_width = 0;  // of all that together

  // The pooled prompt's part of added_width; the rest is sizes. The caller, which knows the
  // encoders, sets it.
  int64_t pooled_width = 0;

  int64_t time_width() const { return 4 * down.front().channels; }

  // Throws not_found, invalid_argument and unsupported naming the field and its value.
  static UnetConfig read(const io::JsonConfig& config, UnetPaths paths = UnetPaths::both);
};

}  // namespace rbee::models
