#pragma once
// Settings that a single-file checkpoint does not have, read off the shapes of its tensors and,
// where shapes do not say them, known of the family. In the words of a diffusers folder's
// config.json.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "rbee/io/json_config.h"
#include "rbee/models/image/image_model.h"
#include "rbee/models/image/original_names.h"

namespace rbee::models {

// The shape of a tensor of one part by its original name behind the part's prefix; nothing when the
// file has no such tensor.
using ShapeOf = std::function<std::optional<Shape>(std::string_view name)>;

// Throw not_found naming a tensor without which the settings are unknown.
UnetBlockCounts unet_block_counts(const ShapeOf& shape_of);
io::JsonConfig unet_config(const ShapeOf& shape_of, const std::string& source);
// `hints`: convolutions of input_hint_block, every other number.
io::JsonConfig control_config(const ShapeOf& shape_of, int64_t hints, const std::string& source);
io::JsonConfig vae_config(const ShapeOf& shape_of, ImageFamily family, const std::string& source);
int64_t vae_levels(const ShapeOf& shape_of);

enum class ClipNames : uint8_t { hugging_face, open_clip };
// `layers_dropped`: at the end, which the model does not read. `activation`: empty = what models
// with such names have.
io::JsonConfig clip_config(const ShapeOf& shape_of, ClipNames names, int64_t layers_dropped,
                           const std::string& source, std::string_view activation = {});

}  // namespace rbee::models
