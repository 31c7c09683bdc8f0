#include "workers/common/model_paths.h"

#include <chrono>
#include <filesystem>

#include "rbee/core/log.h"

namespace rbee::workers {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLineEvery{10};

hub::ProgressCallback log_lines() {
  return [logged = Clock::time_point()](const hub::Progress& progress) mutable {
    const bool at_end = progress.done >= progress.total;
    if (!at_end && Clock::now() - logged < kLineEvery) return;
    logged = Clock::now();
    log(LogLevel::info, "fetching the model",
        {{"progress", hub::to_text(progress)},
         {"done", cat(progress.done)},
         {"total", cat(progress.total)}});
  };
}

}  // namespace

hub::ModelPath ModelPaths::resolve(const std::string& text) {
  if (!hub::name_on_hub(text)) return {.path = text, .mmproj = {}, .name = {}};
  if (!options_) {
    options_.emplace(hub::PullOptions{
        .settings = hub::read_settings(), .memory = memory_(), .progress = log_lines()});
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
  std::error_code error;
  if (hub::is_hub_name(text) || std::filesystem::is_regular_file(text, error)) return {};
  return "File does not exist: " + text;
}

}  // namespace rbee::workers
