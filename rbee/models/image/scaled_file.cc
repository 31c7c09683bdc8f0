#include "rbee/models/image/scaled_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <unordered_map>

#include "rbee/core/error.h"
#include "rbee/io/json_config.h"

namespace rbee::models {
namespace {

using io::TensorEntry;

constexpr std::string_view kScales[] = {".scale_weight", ".weight_scale"};
// Scales of inputs, for products of two bytes; a mark.
constexpr std::string_view kUnread[] = {".scale_input", ".input_scale", ".output_scale",
                                        "scaled_fp8"};
// Quanto's, after the weight's own name.
constexpr std::string_view kQuantoData = ".weight._data", kQuantoScale = ".weight._scale";
constexpr std::string_view kDescription = ".comfy_quant";
// NVFP4's; SmoothQuant's, whose weights are divided by the factors of inputs.
constexpr std::string_view kOtherScales[] = {".weight_scale_2", ".pre_quant_scale"};

bool ends_with_any(std::string_view name, std::span<const std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view end) { return name.ends_with(end); });
}

// "<layer>.weight" for a scale's name.
std::string weight_of(std::string_view name) {
  for (const std::string_view quanto : {kQuantoData, kQuantoScale}) {
    if (name.ends_with(quanto)) return std::string(name.substr(0, name.rfind('.')));
  }
  return cat(name.substr(0, name.rfind('.')), ".weight");
}

// Scales of (M, N) are one number, (M) or (M, 1) for rows, or (m, n) or (m, n, 1) for blocks of
// (M / m, N / n).
void apply_scale(const TensorEntry& scale, TensorEntry& weight) {
  check(io::is_fp8(weight), weight.source(), "tensor ", weight.name, " has a scale, but is ",
        weight.dtype);
  auto values = std::make_shared<std::vector<float>>(io::read_floats(scale));
  for (const float value : *values) {
    check(std::isfinite(value), scale.source(), "tensor ", scale.name, " holds ", value);
  }
  if (values->size() == 1) {
    weight.scale = values->front();
    return;
  }
  const int64_t rank = scale.shape.rank();
  const int64_t down = rank > 0 ? scale.shape[0] : 0, across = rank > 1 ? scale.shape[1] : 1;
  const bool flat = rank == 1 || rank == 2 || (rank == 3 && scale.shape[2] == 1);
  const bool fits = flat && weight.shape.rank() == 2 && down > 0 && across > 0 &&
                    weight.shape[0] % down == 0 && weight.shape[1] % across == 0 &&
                    (rank > 1 || weight.shape[0] == down) && numel(weight.shape) > 0;
  if (!fits) {
    fail(Code::unsupported, scale.source(), "tensor ", scale.name, " is (", scale.shape,
         "); scales of ", weight.name, " of (", weight.shape,
         ") are one number, or one for each row or block of equal size");
  }
  weight.scales = {.rows = weight.shape[0] / down,
                   .columns = weight.shape[1] / across,
                   .values = std::move(values)};
}

// Bytes of a layer's weight, which the file may store as plain ones, by its description.
void apply_description(const TensorEntry& description, TensorEntry& weight) {
  const std::string text(reinterpret_cast<const char*>(description.data.data()),
                         description.data.size());
  const std::string source = cat(description.source(), ": ", description.name);
  const std::string format = io::JsonConfig(text, source).text("format");
  constexpr std::string_view kE4m3 = "float8_e4m3fn", kE5m2 = "float8_e5m2";
  // The shape decides which scales there are.
  constexpr std::array<std::string_view, 4> kLayouts = {"", "_rowwise", "_blockwise", "_block3d"};
  const bool e5m2 = format.starts_with(kE5m2);
  const std::string_view kind = e5m2 ? kE5m2 : kE4m3;
  const bool known = format.starts_with(kind) &&
                     std::ranges::count(kLayouts, std::string_view(format).substr(kind.size())) > 0;
  if (!known) {
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

io::Checkpoint with_scales(io::Checkpoint file, const std::string& source) {
  refuse_other_scales(file);
  std::unordered_map<std::string, TensorEntry> scales, descriptions;
  std::vector<TensorEntry> tensors;
  for (const TensorEntry& entry : file.tensors()) {
    if (ends_with_any(entry.name, kScales) || entry.name.ends_with(kQuantoScale)) {
      scales.emplace(weight_of(entry.name), entry);
    } else if (entry.name.ends_with(kDescription)) {
      descriptions.emplace(weight_of(entry.name), entry);
    } else if (!ends_with_any(entry.name, kUnread)) {
      tensors.push_back(entry);
      if (entry.name.ends_with(kQuantoData)) tensors.back().name = weight_of(entry.name);
    }
  }
  if (tensors.size() == file.tensors().size()) return file;
  for (TensorEntry& entry : tensors) {
    const auto description = descriptions.find(entry.name);
    if (description != descriptions.end()) apply_description(description->second, entry);
    const auto scale = scales.find(entry.name);
    if (scale != scales.end()) apply_scale(scale->second, entry);
  }
  return io::Checkpoint::of(std::move(tensors), source);
}

io::Checkpoint open_scaled(const std::filesystem::path& path) {
  return with_scales(io::Checkpoint::open(path), path.string());
}

}  // namespace rbee::models
