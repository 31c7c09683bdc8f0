#include "workers/common/model_paths.h"

#include <filesystem>

#include "rbee/core/error.h"
#include "rbee/core/input_file.h"
#include "workers/common/loading.h"

namespace rbee::workers {
hub::ModelPath ModelPaths::resolve(const std::string& text) {
  if (!hub::name_on_hub(text)) return {.path = text, .mmproj = {}, .name = {}};
  if (!options_) {
    options_.emplace(
        hub::PullOptions{.settings = hub::read_settings(),
                         .memory = memory_(),
                         .progress = fetch_progress(state_),
                         // The hub may send nothing for long.
                         .chosen = [this](const hub::Choice&, int64_t to_fetch) {
                           if (to_fetch == 0) return;
                           state_.set({.phase = server::LoadPhase::fetching, .total = to_fetch});
                         }});
  }
  return hub::resolve_model_path(text, *options_);
}

std::string ModelPaths::use(std::string& path) {
  hub::ModelPath found = resolve(path);
  path = std::move(found.path);
  return found.name;
}

void ModelPaths::use(std::string& model, std::string& mmproj) {
  mmproj = resolve(mmproj).tower();
  hub::ModelPath found = resolve(model);
  model = std::move(found.path);
  if (mmproj.empty()) mmproj = std::move(found.mmproj);
}

std::string no_file_or_name(const std::string& text) {
  if (hub::is_hub_name(text)) return {};
  try {
    refuse_no_file(text);
  } catch (const Error& error) {
    return error.what();
  }
  std::error_code error;
  return std::filesystem::exists(text, error) ? std::string() : "File does not exist: " + text;
}

}  // namespace rbee::workers
