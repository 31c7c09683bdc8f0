#pragma once
// Paths on a worker's command line, which may be names of models on the hub: hf:org/repo and its
// like.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "rbee/hub/pull.h"
#include "server/worker/loading.h"

namespace rbee::workers {

// Fetches models into Hugging Face's cache, and tells how far that is.
class ModelPaths {
 public:
  // memory: bytes free on the device, for the choice of a quantization. It and the hub's settings
  // matter only to names, so a worker of local files reads neither. The state must outlive it.
  ModelPaths(std::function<int64_t()> memory, server::LoadingState& state)
      : memory_(std::move(memory)), state_(state) {}

  // Puts a path into the place of a name; see hub::resolve_model_path(). Returns the name there.
  std::string use(std::string& path);
  // The same of a model, which may bring a vision tower for an empty `mmproj`.
  void use(std::string& model, std::string& mmproj);

 private:
  hub::ModelPath resolve(const std::string& text);

  std::function<int64_t()> memory_;
  server::LoadingState& state_;
  std::optional<hub::PullOptions> options_;
};

// The check of an option that takes a file or a name of the hub: a message, empty if it may be one.
std::string no_file_or_name(const std::string& text);

}  // namespace rbee::workers
