#pragma once
// The models' files of `rbee serve` for its clients: Hugging Face's cache.

#include <memory>

#include "cli/model_records.h"
#include "cli/serve_models.h"
#include "server/front/model_store.h"

namespace rbee::tools {

// The models that clients made of others, in a folder beside the cache.
std::shared_ptr<ModelRecords> make_model_records();

// Fetches from the hub, also if `models` does not. may_pull: also what a made model is made of.
std::shared_ptr<server::ModelStore> make_model_store(std::shared_ptr<const HubModels> models,
                                                     std::shared_ptr<ModelRecords> records,
                                                     bool may_pull);

}  // namespace rbee::tools
