#include "rbee/models/image/scaled_file.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "rbee/core/error.h"

namespace rbee::models {
namespace {

using io::TensorEntry;

constexpr std::string_view kScales[] = {".scale_weight", ".weight_scale"};
// Scales of inputs, for products of two bytes; a mark; a description as JSON.
constexpr std::string_view kUnread[] = {".scale_input", ".input_scale", "scaled_fp8",
                                        ".comfy_quant"};

bool ends_with_any(std::string_view name, std::span<const std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view end) { return name.ends_with(end); });
}

// "<layer>.weight" of a scale's name.
std::string weight_of(std::string_view name) {
  return cat(name.substr(0, name.rfind('.')), ".weight");
}

float scale_of(const TensorEntry& entry) {
  if (numel(entry.shape) != 1) {
    fail(Code::unsupported, entry.source(), "tensor ", entry.name, " is (", entry.shape,
         "); a scale is one number for a whole matrix");
  }
  const float scale = io::read_floats(entry).front();
  check(std::isfinite(scale), entry.source(), "tensor ", entry.name, " is ", scale);
  return scale;
}

}  // namespace

io::Checkpoint open_scaled(const std::filesystem::path& path) {
  io::Checkpoint file = io::Checkpoint::open(path);
  std::unordered_map<std::string, float> scales;
  std::vector<TensorEntry> tensors;
  for (const TensorEntry& entry : file.tensors()) {
    if (ends_with_any(entry.name, kScales)) {
      scales.emplace(weight_of(entry.name), scale_of(entry));
    } else if (!ends_with_any(entry.name, kUnread)) {
      tensors.push_back(entry);
    }
  }
  if (tensors.size() == file.tensors().size()) return file;
  for (TensorEntry& entry : tensors) {
    const auto scale = scales.find(entry.name);
    if (scale == scales.end()) continue;
    check(io::is_fp8(entry), path.string(), "tensor ", entry.name, " has a scale, but is ",
          entry.dtype);
    entry.scale = scale->second;
  }
  return io::Checkpoint::of(std::move(tensors), path.string());
}

}  // namespace rbee::models
