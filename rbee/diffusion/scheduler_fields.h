#pragma once
// The fields of scheduler_config.json that each scheduler class of diffusers has, and their
// defaults. A file keeps the fields of the class that it was converted from (from_config()), and
// its own class ignores them.

#include <optional>
#include <string_view>
#include <vector>

#include "rbee/diffusion/names.h"

namespace rbee::diffusion {

struct ClassField {
  std::string_view name;
  std::string_view value;  // the default as JSON; null for none and for -infinity
  bool operator==(const ClassField&) const = default;
};

// The fields of the class's __init__ that parse_scheduler_config() reads, each once. Nothing: the
// class is not known.
std::optional<std::vector<ClassField>> fields_of(std::string_view class_name);

// Nothing: the class is not known.
std::optional<bool> has_field(std::string_view class_name, std::string_view field);

// Whether the sampler's class in diffusers has use_karras_sigmas and its kin. A request may name
// another sampler than the file's: from_config() hands these fields on. True for samplers that
// diffusers does not have.
bool has_sigma_schedules(Sampler sampler);

}  // namespace rbee::diffusion
