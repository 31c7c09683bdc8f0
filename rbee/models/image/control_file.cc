#include "rbee/models/image/control_file.h"

#include <algorithm>
#include <charconv>

#include "rbee/core/error.h"
#include "rbee/io/diffusers_folder.h"
#include "rbee/models/image/inferred_config.h"
#include "rbee/models/image/scaled_file.h"

namespace rbee::models {
namespace {

namespace fs = std::filesystem;
using io::TensorEntry;

constexpr std::string_view kPrefix = "control_model.";
constexpr std::string_view kHint = "input_hint_block.";
constexpr std::string_view kZero = "zero_convs.";
constexpr std::string_view kMiddle = "middle_block_out.0.";

// Convolutions and activations take turns.
std::string hint_name(std::string_view rest, int64_t hints) {
  int64_t at = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), at);
  if (error != std::errc()) return {};
  const std::string_view leaf = rest.substr(static_cast<size_t>(end - rest.data()));
  const int64_t index = at / 2;
  if (index == 0) return cat("controlnet_cond_embedding.conv_in", leaf);
  if (index + 1 == hints) return cat("controlnet_cond_embedding.conv_out", leaf);
  return cat("controlnet_cond_embedding.blocks.", index - 1, leaf);
}

std::string zero_name(std::string_view rest) {
  const size_t dot = rest.find('.');
  if (dot == std::string_view::npos || rest.substr(dot, 3) != ".0.") return {};
  return cat("controlnet_down_blocks.", rest.substr(0, dot), ".", rest.substr(dot + 3));
}

class ControlFile {
 public:
  ControlFile(io::Checkpoint file, std::string source)
      : file_(std::move(file)), source_(std::move(source)) {
    const bool behind = std::ranges::any_of(
        file_.tensors(), [](const TensorEntry& entry) { return entry.name.starts_with(kPrefix); });
    if (behind) prefix_ = kPrefix;
    while (shape(cat(kHint, 2 * hints_, ".weight"))) ++hints_;
    if (hints_ < 2 || !shape("zero_convs.0.0.weight")) {
      fail(Code::unsupported, source_, "it is no ControlNet: input_hint_block and zero_convs are ",
           "missing; of diffusers' files give the folder with config.json");
    }
  }

  ModelPart read() const {
    const ShapeOf shapes = [this](std::string_view name) { return shape(name); };
    const UnetBlockCounts counts = unet_block_counts(shapes);
    std::vector<TensorEntry> tensors;
    for (const TensorEntry& entry : file_.tensors()) {
      if (!entry.name.starts_with(prefix_)) continue;
      std::string name = control_name(entry.name.substr(prefix_.size()), counts, hints_);
      if (name.empty()) continue;
      tensors.push_back(entry);
      tensors.back().name = std::move(name);
    }
    return {"controlnet",
            "ControlNetModel",
            control_config(shapes, hints_, source_),
            io::Checkpoint::of(std::move(tensors), source_),
            {}};
  }

 private:
  std::optional<Shape> shape(std::string_view name) const {
    const TensorEntry* entry = file_.find(cat(prefix_, name));
    if (entry == nullptr) return std::nullopt;
    return entry->shape;
  }

  io::Checkpoint file_;
  std::string source_;
  std::string_view prefix_;
  int64_t hints_ = 0;
};

}  // namespace

std::string control_name(std::string_view name, const UnetBlockCounts& counts, int64_t hints) {
  if (name.starts_with(kHint)) return hint_name(name.substr(kHint.size()), hints);
  if (name.starts_with(kZero)) return zero_name(name.substr(kZero.size()));
  if (name.starts_with(kMiddle)) return cat("controlnet_mid_block.", name.substr(kMiddle.size()));
  return unet_name(name, counts);
}

ModelPart read_control_file(const fs::path& path) {
  io::refuse_pickle(path);
  const fs::path settings = path.parent_path() / "config.json";
  if (fs::exists(settings)) return read_part_folder(path.parent_path(), "ControlNetModel");
  return ControlFile(open_scaled(path), path.string()).read();
}

}  // namespace rbee::models
