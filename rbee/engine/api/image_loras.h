#pragma once
// LoRAs in a prompt: <lora:name>, <lora:name:0.8>, as AUTOMATIC1111 and stable-diffusion.cpp read
// them; also <lora:name:0.5:1> or <lora:name:te=0.5:unet=1>, with the strength for text encoders
// and for the denoiser, as AUTOMATIC1111 does (extensions-builtin/Lora/extra_networks_lora.py).

#include <string>
#include <string_view>
#include <vector>

#include "rbee/engine/api/image.h"

namespace rbee::engine {

// Whether a tag can name the adapter: ":" ends its name and ">" the tag.
constexpr bool fits_tag(std::string_view name) {
  return name.find_first_of("<>:\n") == std::string_view::npos;
}

struct PromptLoras {
  std::string prompt;  // without the tags
  std::vector<LoraUse> loras;
};

// "lyco" means "lora"; case does not matter; the default strength is 1. Throws invalid_argument for
// a tag without a name or whose strength is no number, and unsupported for one with more settings
// and for <hypernet:...>; the message names the tag. Drops tags of other kinds, as AUTOMATIC1111
// does if no extension reads them.
PromptLoras split_loras(std::string_view prompt);

// The prompt for the encoders, and all LoRAs of the request: those of its field, then those of its
// prompt. With PromptRule::none a prompt has no tags. Throws as split_loras.
PromptLoras prompt_loras(const ImageRequest& request);

}  // namespace rbee::engine
