#pragma once
// Which fields of scheduler_config.json each scheduler class of diffusers has. A file keeps the
// fields of the class that it was converted from (from_config()), and its own class ignores them.

#include <optional>
#include <string_view>

#include "rbee/diffusion/names.h"

namespace rbee::diffusion {

// Whether __init__ of the class has the field, of those that parse_scheduler_config() reads.
// Nothing: the class is not known.
std::optional<bool> has_field(std::string_view class_name, std::string_view field);

// Whether the sampler's class in diffusers has use_karras_sigmas and its kin. A request may name
// another sampler than the file's: from_config() hands these fields on. True for samplers that
// diffusers does not have.
bool has_sigma_schedules(Sampler sampler);

}  // namespace rbee::diffusion
