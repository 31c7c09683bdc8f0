#include "cli/serve_made.h"

#include <utility>

#include "cli/made_files.h"
#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/core/printable.h"
#include "server/apis/ollama/models.h"

namespace rbee::tools {
namespace {

using server::OllamaRecord;
using server::ServedModel;

// What its worker depends on.
std::string state_of(const OllamaRecord& record) {
  return cat(record.name, "#", record.from, "#", server::ollama_digest(record.chat_template), "#",
             folder_name(record.files), "#", folder_name(record.adapters));
}

// A worker of its own, which has no other names.
void own(ServedModel& model, const OllamaRecord& record) {
  model.name = record.name;
  model.record = state_of(record);
  model.files += cat("#", model.record);
  model.adapters.clear();
  std::vector<std::string> flags;
  for (size_t i = 0; i < model.flags.size(); ++i) {
    if (model.flags[i] == "--alias") {
      ++i;  // and the name
    } else {
      flags.push_back(model.flags[i]);
    }
  }
  model.flags = std::move(flags);
}

void add_flags(ServedModel& model, const OllamaRecord& record, const ModelRecords& records) {
  if (!record.chat_template.empty()) {
    const std::string file = records.template_file(record).string();
    model.flags.insert(model.flags.end(), {"--chat-template", file});
  }
  if (record.adapters.empty()) return;
  int number = 0;
  for (const auto& path : adapters_in(records.folder_of(record.adapters), record.adapters)) {
    const std::string name = cat("adapter-", ++number);
    model.flags.insert(model.flags.end(), {"--lora", cat(name, "=", path.string())});
  }
  model.flags.emplace_back("--apply-loras");
}

}  // namespace

ServedModel MadeModels::of_files(const OllamaRecord& record) const {
  const MadeModelFiles files = model_in(records_->folder_of(record.files), record.files);
  ServedModel out = models_->describe_made(record.name, files.model, files.mmproj);
  out.modified = record.created;
  own(out, record);
  add_flags(out, record, *records_);
  return out;
}

std::vector<ServedModel> MadeModels::list() {
  const std::scoped_lock lock(mutex_);
  std::vector<ServedModel> out;
  std::map<std::string, std::optional<ServedModel>> all;
  for (const OllamaRecord& record : records_->list()) {
    if (record.files.empty()) continue;
    const std::string state = state_of(record);
    const auto known = read_.find(state);
    const auto& one = all.emplace(state, known == read_.end() ? read(record) : known->second);
    if (one.first->second) out.push_back(*one.first->second);
  }
  read_ = std::move(all);
  return out;
}

std::optional<ServedModel> MadeModels::read(const OllamaRecord& record) const {
  try {
    return of_files(record);
  } catch (const Error& error) {
    log(LogLevel::warn, "a model that a client made is left out",
        {{"model", record.name}, {"error", printable_line(error.what())}});
    return std::nullopt;
  }
}

std::optional<ServedModel> MadeModels::find(const std::string& name) {
  const std::optional<OllamaRecord> record = records_->find(name);
  if (!record || !record->has_own_worker()) return models_->find(name);
  if (!record->files.empty()) return of_files(*record);
  std::optional<ServedModel> model = models_->find(record->from);
  if (!model) return model;
  own(*model, *record);
  add_flags(*model, *record, *records_);
  return model;
}

bool MadeModels::still_served(const ServedModel& model) const {
  if (model.record.empty()) return HubModels::has_files(model);
  const std::optional<OllamaRecord> record = records_->find(model.name);
  if (!record || state_of(*record) != model.record) return false;
  return !record->files.empty() || HubModels::has_files(model);
}

}  // namespace rbee::tools
