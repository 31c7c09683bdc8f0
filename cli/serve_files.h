#pragma once
// The models' files of `rbee serve` for its clients: Hugging Face's cache.

#include <memory>

#include "cli/serve_models.h"
#include "server/front/model_files.h"

namespace rbee::tools {

// Fetches from the hub, also if `models` does not.
std::shared_ptr<server::ModelFiles> make_model_files(std::shared_ptr<const HubModels> models);

}  // namespace rbee::tools
