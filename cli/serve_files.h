#pragma once
// The models' files of `rbee serve` for its clients: Hugging Face's cache.

#include <memory>
#include <optional>
#include <string>

#include "cli/model_records.h"
#include "cli/serve_models.h"
#include "server/front/model_store.h"

namespace rbee::tools {

// The models that clients made of others, in a folder beside the cache.
std::shared_ptr<ModelRecords> make_model_records();

// Fetches from the hub, also if `models` does not.
std::shared_ptr<server::ModelStore> make_model_store(std::shared_ptr<const HubModels> models,
                                                     std::shared_ptr<ModelRecords> records);

// As HubModels::find(), for made models with a template too.
std::optional<server::ServedModel> find_served(const HubModels& models, ModelRecords& records,
                                               const std::string& name);

// Whether a loaded model's files are there, and the record is the same that made it.
bool still_served(ModelRecords& records, const server::ServedModel& model);

}  // namespace rbee::tools
