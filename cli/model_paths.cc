#include "cli/model_paths.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "backends/api/registry.h"
#include "cli/model_options.h"
#include "rbee/core/byte_text.h"
#include "rbee/core/printable.h"
#include "rbee/engine/common/device_choice.h"

namespace rbee::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLineEvery{10};  // where there is no terminal
constexpr int kLineWidth = 72;                  // longer than any line before it

void print_choice(const hub::Choice& choice, int64_t to_fetch) {
  if (to_fetch == 0) return;
  std::fprintf(stderr, "%s (%s of %s to fetch)\n", printable_line(choice.why).c_str(),
               bytes_to_text(to_fetch).c_str(), bytes_to_text(choice.bytes()).c_str());
}

hub::ProgressCallback progress_line() {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  return [terminal, printed = Clock::time_point()](const hub::DownloadProgress& progress) mutable {
    const bool at_end = progress.done >= progress.total;
    if (terminal) {
      std::fprintf(stderr, "\r%-*s%s", kLineWidth, hub::to_text(progress).c_str(),
                   at_end ? "\n" : "");
    } else if (at_end || Clock::now() - printed >= kLineEvery) {
      printed = Clock::now();
      std::fprintf(stderr, "%s\n", hub::to_text(progress).c_str());
    }
  };
}

int64_t free_memory(const std::string& device) {
  if (device == "auto") return engine::most_free_memory(backends());
  const auto id = parse_device_id(device);
  check(id.has_value(), "--device", "'", device, "' is none of auto, cpu, cuda:N, rocm:N, metal:N");
  return get_device(*id).memory().free;
}

}  // namespace

hub::PullOptions pull_options(const std::string& device) {
  return {.settings = hub::read_settings(),
          .memory = free_memory(device),
          .progress = progress_line(),
          .chosen = print_choice};
}

std::string use_local_path(std::string& path, const std::string& device) {
  if (!hub::name_on_hub(path)) return {};
  hub::ModelPath found = hub::resolve_model_path(path, pull_options(device));
  path = found.path;
  return found.name;
}

void use_local_paths(ModelOptions& options) {
  if (hub::is_hub_name(options.mmproj)) {
    options.mmproj = hub::resolve_model_path(options.mmproj, pull_options(options.device)).tower();
  }
  const bool of_pictures = hub::model_of_short_name(options.model).has_value();
  if (of_pictures || !hub::name_on_hub(options.model)) return;
  options.model_id = options.model;
  const hub::ModelPath found = hub::resolve_model_path(options.model, pull_options(options.device));
  options.model = found.path;
  if (options.mmproj.empty()) options.mmproj = found.mmproj;
}

}  // namespace rbee::tools
