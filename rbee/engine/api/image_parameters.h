#pragma once
// The settings of a picture as AUTOMATIC1111 writes them into its files, read back.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rbee/engine/api/image.h"

namespace rbee::engine {

// The request that makes the picture again, as far as its text says: prompts, size, steps, sampler,
// schedule, guidance, seed, random numbers, strength and second pass. What it does not say has the
// request's defaults, but random numbers are those of an NVIDIA GPU, as A1111's own. Any text is
// read. unused: where it is not null, the "key: value" pairs that stand in the text and not in the
// request, because a value is out of range or no number, or the key means nothing here; keys that
// change no picture are left out.
ImageRequest parse_parameters(std::string_view text, std::vector<std::string>* unused = nullptr);

// "Prompt", "Negative prompt", and every key of the text once with its last value, as A1111 tells
// them: values without their quotes, "Size: 512x768" as "Size-1" and "Size-2".
std::vector<std::pair<std::string, std::string>> infotext_fields(std::string_view text);

// The key of a second pass's strength where the first one has one, too, which AUTOMATIC1111 does
// not know; else that is "Denoising strength".
inline constexpr const char* kHiresStrength = "Hires denoising strength";

}  // namespace rbee::engine
