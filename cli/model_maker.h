#pragma once
// What POST /api/create makes of files: docs/decisions/0050-uploaded-models.md

#include <memory>
#include <string>

#include "cli/model_records.h"
#include "cli/serve_models.h"
#include "server/front/model_store.h"
#include "tools/convert/recipe.h"

namespace rbee::tools {

// For any thread.
class ModelMaker {
 public:
  ModelMaker(std::shared_ptr<const HubModels> models, std::shared_ptr<ModelRecords> records)
      : models_(std::move(models)), records_(std::move(records)) {}

  // Chat or embedding. Throws invalid_argument and unsupported naming the body's field if its files
  // or adapters are no model or no adapters of it.
  server::ModelKind check_files(server::OllamaRecord& record) const;
  // With the same model's weights in another type, in a file of its own. Throws as
  // rbee quantize does, and cancelled (core/cancel.h).
  server::OllamaRecord quantized(server::OllamaRecord record, const Recipe& recipe,
                                 const server::CreateWatch& watch) const;

 private:
  class Opened;
  void check_adapters(const server::OllamaRecord& record, const std::string& model) const;

  const std::shared_ptr<const HubModels> models_;
  const std::shared_ptr<ModelRecords> records_;
};

}  // namespace rbee::tools
