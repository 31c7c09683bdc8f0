#include "rbee/models/image/diffusers_names.h"

#include <utility>

#include "rbee/core/cat.h"

namespace rbee::models {
namespace {

constexpr int64_t kMaxBlocks = 1024;

int64_t count(const ShapeOf& found, std::string_view prefix, std::string_view suffix) {
  int64_t n = 0;
  while (n < kMaxBlocks && found(cat(prefix, n, suffix))) ++n;
  return n;
}

// A name without its leaf.
std::string_view module_of(std::string_view name) {
  return name.substr(0, name.rfind('.'));
}

}  // namespace

bool is_diffusers_unet(const ShapeOf& found) {
  return found("conv_in.weight") && found("down_blocks.0.resnets.0.conv1.weight");
}

bool is_diffusers_vae(const ShapeOf& found) {
  return found("decoder.up_blocks.0.resnets.0.conv1.weight").has_value();
}

ShapeOf diffusers_unet_shapes(ShapeOf found) {
  const UnetBlockCounts counts{count(found, "down_blocks.0.resnets.", ".conv1.weight")};
  return [found = std::move(found), counts](std::string_view name) -> std::optional<Shape> {
    const std::string theirs = unet_name(name, counts);
    // Numbers of a block that does not exist must not lead to another one's name.
    if (original_unet_module(module_of(theirs), counts) != module_of(name)) return std::nullopt;
    return found(theirs);
  };
}

ShapeOf diffusers_vae_shapes(ShapeOf found) {
  const int64_t levels = count(found, "decoder.up_blocks.", ".resnets.0.conv1.weight");
  return [found = std::move(found), levels](std::string_view name) -> std::optional<Shape> {
    const std::string theirs = vae_name(name, levels);
    if (const auto shape = found(theirs)) return shape;
    // The older name.
    const size_t at = theirs.find(".to_q.");
    if (at == std::string::npos) return std::nullopt;
    return found(cat(theirs.substr(0, at), ".query.weight"));
  };
}

std::string encoder_folder_name(std::string_view name) {
  constexpr std::string_view kModel = "text_model.";
  for (const auto& [theirs, folder] :
       {std::pair<std::string_view, std::string_view>{"te.1.", "text_encoder_2."},
        {"te.", "text_encoder."},
        {"text_encoder_2.", "text_encoder_2."},
        {"text_encoder.", "text_encoder."}}) {
    if (!name.starts_with(theirs)) continue;
    std::string_view rest = name.substr(theirs.size());
    if (rest.starts_with(kModel)) rest.remove_prefix(kModel.size());
    return cat(folder, rest);
  }
  return std::string(name);
}

}  // namespace rbee::models
