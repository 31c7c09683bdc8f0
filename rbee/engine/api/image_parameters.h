#pragma once
// Reads the settings text that AUTOMATIC1111 writes into its picture files.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rbee/engine/api/image.h"

namespace rbee::engine {

// The request that makes the picture again, as far as the text says: prompts, size, steps, sampler,
// schedule, guidance, seed, random numbers, strength and second pass. All else has the request's
// defaults, except that random numbers are those of an NVIDIA GPU, as in A1111. Any text is
// accepted. unused: if not null, receives the "key: value" pairs that the request does not contain
// because a value is out of range or no number, or the key is unknown here; keys that change no
// picture are left out.
ImageRequest parse_parameters(std::string_view text, std::vector<std::string>* unused = nullptr);

// "Prompt", "Negative prompt", and every key of the text once, with its last value, in A1111's
// form: values without their quotes, "Size: 512x768" as "Size-1" and "Size-2".
std::vector<std::pair<std::string, std::string>> infotext_fields(std::string_view text);

// The key of a second pass's strength if the first pass has one too, which AUTOMATIC1111 does not
// know; else the key is "Denoising strength".
inline constexpr const char* kHiresStrength = "Hires denoising strength";

}  // namespace rbee::engine
