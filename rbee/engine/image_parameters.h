#pragma once
// The settings of a picture as AUTOMATIC1111 writes them into its files, read back.

#include <string_view>

#include "rbee/engine/image_api.h"

namespace rbee::engine {

// The request that makes the picture again, as far as its text says: prompts, size, steps, sampler,
// schedule, guidance, seed, random numbers, strength and second pass. What it does not say has the
// request's defaults, but random numbers are those of an NVIDIA GPU, as A1111's own. Other keys are
// passed over. Throws invalid_argument naming a key whose value is no number of its kind.
ImageRequest parse_parameters(std::string_view text);

// The key of a second pass's strength where the first one has one, too, which AUTOMATIC1111 does
// not know; else that is "Denoising strength".
inline constexpr const char* kHiresStrength = "Hires denoising strength";

}  // namespace rbee::engine
