#pragma once
// Derives the settings that a single-file checkpoint does not have, in the form of a diffusers
// folder's config.json: from the shapes of its tensors, or else from its family.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "rbee/io/json_config.h"
#include "rbee/models/image/image_model.h"
#include "rbee/models/image/original_names.h"

namespace rbee::models {

// The shape of a part's tensor, by its original name after the part's prefix; nothing if the file
// has no such tensor.
using ShapeOf = std::function<std::optional<Shape>(std::string_view name)>;

// These throw not_found naming a missing tensor that the settings need.
UnetBlockCounts unet_block_counts(const ShapeOf& shape_of);
io::JsonConfig unet_config(const ShapeOf& shape_of, const std::string& source);
// `hints`: convolutions of input_hint_block, every other number.
io::JsonConfig control_config(const ShapeOf& shape_of, int64_t hints, const std::string& source);
io::JsonConfig vae_config(const ShapeOf& shape_of, ImageFamily family, const std::string& source);
int64_t vae_levels(const ShapeOf& shape_of);

enum class ClipNames : uint8_t { hugging_face, open_clip };
// `layers_dropped`: last layers that the model does not read. `activation`: empty = the usual one
// of models with such names.
io::JsonConfig clip_config(const ShapeOf& shape_of, ClipNames names, int64_t layers_dropped,
                           const std::string& source, std::string_view activation = {});

// Of Qwen3, by Hugging Face's names: the text of its config.json. Throws unsupported if norms of
// queries are missing, which Qwen3 has.
std::string qwen3_config(const ShapeOf& shape_of, const std::string& source);

}  // namespace rbee::models
