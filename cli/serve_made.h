#pragma once
// The models that clients made, as `rbee serve` serves them: docs/decisions/0049-made-models.md

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cli/model_records.h"
#include "cli/serve_models.h"

namespace rbee::tools {

// For any thread.
class MadeModels {
 public:
  MadeModels(std::shared_ptr<const HubModels> models, std::shared_ptr<ModelRecords> records)
      : models_(std::move(models)), records_(std::move(records)) {}

  // Those of files of their own; the others are listed beside the model that they are made of.
  std::vector<server::ServedModel> list();
  // As HubModels::find(), for made models with a worker of their own too.
  std::optional<server::ServedModel> find(const std::string& name);
  // Whether a loaded model's files are there, and the record is the same that made it.
  bool still_served(const server::ServedModel& model) const;

 private:
  server::ServedModel of_files(const server::OllamaRecord& record) const;
  std::optional<server::ServedModel> read(const server::OllamaRecord& record) const;

  const std::shared_ptr<const HubModels> models_;
  const std::shared_ptr<ModelRecords> records_;
  std::mutex mutex_;
  // By the record's state; a model that cannot be read is nothing. Guarded by mutex_.
  std::map<std::string, std::optional<server::ServedModel>> read_;
};

}  // namespace rbee::tools
