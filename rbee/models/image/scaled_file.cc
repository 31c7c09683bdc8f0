#include "rbee/models/image/scaled_file.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "rbee/core/error.h"
#include "rbee/io/json_config.h"

namespace rbee::models {
namespace {

using io::TensorEntry;

constexpr std::string_view kScales[] = {".scale_weight", ".weight_scale"};
// Scales of inputs, for products of two bytes; a mark.
constexpr std::string_view kUnread[] = {".scale_input", ".input_scale", "scaled_fp8"};
constexpr std::string_view kDescription = ".comfy_quant";
// Of NVFP4; of SmoothQuant, whose weights are divided by what inputs are multiplied by.
constexpr std::string_view kOtherScales[] = {".weight_scale_2", ".pre_quant_scale"};

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

// Bytes of a layer's weight, which may be stored as plain ones, as its description calls them.
void apply_description(const TensorEntry& description, TensorEntry& weight) {
  const std::string text(reinterpret_cast<const char*>(description.data.data()),
                         description.data.size());
  const std::string source = cat(description.source(), ": ", description.name);
  const std::string format = io::JsonConfig(text, source).text("format");
  const bool e5m2 = format == "float8_e5m2";
  if (!e5m2 && format != "float8_e4m3fn") {
    fail(Code::unsupported, source, "format is \"", format,
         "\", wanted float8_e4m3fn or float8_e5m2; take a file in 16 bits or a GGUF file");
  }
  if (weight.dtype != DType::u8 || weight.is_e5m2) return;
  weight.is_e5m2 = e5m2;
  if (!e5m2) weight.dtype = DType::f8e4m3;
}

void refuse_other_scales(const io::Checkpoint& file) {
  for (const TensorEntry& entry : file.tensors()) {
    if (!ends_with_any(entry.name, kOtherScales)) continue;
    fail(Code::unsupported, entry.source(), "tensor ", entry.name, " scales a weight in a way ",
         "that is not read; take a file in 16 bits or a GGUF file");
  }
}

}  // namespace

io::Checkpoint open_scaled(const std::filesystem::path& path) {
  io::Checkpoint file = io::Checkpoint::open(path);
  refuse_other_scales(file);
  std::unordered_map<std::string, float> scales;
  std::unordered_map<std::string, TensorEntry> descriptions;
  std::vector<TensorEntry> tensors;
  for (const TensorEntry& entry : file.tensors()) {
    if (ends_with_any(entry.name, kScales)) {
      scales.emplace(weight_of(entry.name), scale_of(entry));
    } else if (entry.name.ends_with(kDescription)) {
      descriptions.emplace(weight_of(entry.name), entry);
    } else if (!ends_with_any(entry.name, kUnread)) {
      tensors.push_back(entry);
    }
  }
  if (tensors.size() == file.tensors().size()) return file;
  for (TensorEntry& entry : tensors) {
    const auto description = descriptions.find(entry.name);
    if (description != descriptions.end()) apply_description(description->second, entry);
    const auto scale = scales.find(entry.name);
    if (scale == scales.end()) continue;
    check(io::is_fp8(entry), path.string(), "tensor ", entry.name, " has a scale, but is ",
          entry.dtype);
    entry.scale = scale->second;
  }
  return io::Checkpoint::of(std::move(tensors), path.string());
}

}  // namespace rbee::models
