#pragma once
// Paths of commands, which may be names of models on the hub: hf:org/repo and its like.

#include <string>

#include "rbee/hub/pull.h"

namespace rbee::tools {

struct ModelOptions;

// As hub::read_settings(), with a progress line on standard error: on a terminal one that changes,
// elsewhere a line every ten seconds. device: of the model, whose memory is part of the choice.
hub::PullOptions pull_options(const std::string& device);

// Fetches what the text names, and puts its path into its place; see hub::resolve_model_path().
// Returns its name there.
std::string use_local_path(std::string& path, const std::string& device);
// The same of a model and its vision tower, which the name of a model may bring along.
void use_local_paths(ModelOptions& options);

}  // namespace rbee::tools
