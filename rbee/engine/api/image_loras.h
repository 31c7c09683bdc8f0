#pragma once
// LoRAs that a prompt names: <lora:name>, <lora:name:0.8>, as AUTOMATIC1111 and
// stable-diffusion.cpp read them; also <lora:name:0.5:1> or <lora:name:te=0.5:unet=1>, the strength
// for text encoders and the other one, as AUTOMATIC1111 does
// (extensions-builtin/Lora/extra_networks_lora.py).

#include <string>
#include <string_view>
#include <vector>

#include "rbee/engine/api/image.h"

namespace rbee::engine {

struct PromptLoras {
  std::string prompt;  // without its tags
  std::vector<LoraUse> loras;
};

// "lyco" is another word for "lora", both in any case of letters; a strength that is absent is 1.
// Throws invalid_argument naming a tag without a name or whose strength is no number, unsupported
// naming one with more settings and <hypernet:...>. Tags of other kinds are taken out and do
// nothing, as in AUTOMATIC1111, which may have no extension that knows them.
PromptLoras split_loras(std::string_view prompt);

// What a request's encoders read, and every adapter that it asks for: those of its field, then
// those of its prompt, which has no tags with PromptRule::none. Throws as split_loras.
PromptLoras prompt_loras(const ImageRequest& request);

}  // namespace rbee::engine
