#include "workers/common/model_paths.h"

#include <chrono>
#include <filesystem>

#include "rbee/core/log.h"

namespace rbee::workers {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLineEvery{10};

hub::ProgressCallback log_lines() {
  return [told = Clock::time_point()](const hub::Progress& progress) mutable {
    const bool at_end = progress.done >= progress.total;
    if (!at_end && Clock::now() - told < kLineEvery) return;
    told = Clock::now();
    log(LogLevel::info, "fetching the model",
        {{"progress", hub::to_text(progress)},
         {"done", cat(progress.done)},
         {"total", cat(progress.total)}});
  };
}

}  // namespace

ModelPaths::ModelPaths(int64_t memory)
    : options_{.settings = hub::read_settings(), .memory = memory, .progress = log_lines()} {}

std::string ModelPaths::use(std::string& path) const {
  hub::ModelPath found = hub::resolve_model_path(path, options_);
  path = std::move(found.path);
  return found.name;
}

void ModelPaths::use(std::string& model, std::string& mmproj) const {
  use(mmproj);
  hub::ModelPath found = hub::resolve_model_path(model, options_);
  model = std::move(found.path);
  if (mmproj.empty()) mmproj = std::move(found.mmproj);
}

std::string no_file_or_name(const std::string& text) {
  std::error_code error;
  if (hub::is_hub_name(text) || std::filesystem::is_regular_file(text, error)) return {};
  return "File does not exist: " + text;
}

}  // namespace rbee::workers
