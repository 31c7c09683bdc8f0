#include "rbee/io/fp8_folder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "rbee/core/error.h"
#include "rbee/io/float4_folder.h"
#include "rbee/io/json_config.h"

namespace rbee::io {
namespace {

constexpr std::string_view kScales[] = {".weight_scale_inv", ".weight_scale"};
constexpr std::string_view kActivations[] = {
    ".input_scale",      ".output_scale", ".q_scale",      ".k_scale",           ".v_scale",
    ".input_zero_point", ".k_zero_point", ".v_zero_point", ".input_global_scale"};
constexpr std::string_view kIntegers = ".weight_packed";  // beside scales of their own
constexpr IntegerRange kBlock{1, int64_t{1} << 20};

bool ends_with_any(std::string_view name, std::span<const std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view end) { return name.ends_with(end); });
}

[[noreturn]] void refuse(const JsonConfig& config, std::string_view field,
                         std::string_view wanted) {
  fail(Code::unsupported, config.source(), config.describe(field), " is \"",
       config.text_or(field, ""), "\", wanted ", wanted,
       "; take the original weights or a GGUF file");
}

void check_weights(const JsonConfig& weights) {
  const int64_t bits = weights.integer("num_bits", {1, 64});
  if (bits != 8) {
    fail(Code::unsupported, weights.source(), weights.describe("num_bits"), " is ", bits,
         ", wanted 8");
  }
  if (weights.text("type") != "float") refuse(weights, "type", "float");
}

// config.json's settings of the weights: their blocks, or none (scales of rows or of all).
struct Scheme {
  bool fp8 = false;
  int64_t rows = 0, columns = 0;  // of a block; 0: no blocks
  bool rounds_inputs = false;     // activations are floats of one byte too
};

Scheme read_blocks(const JsonConfig& config, std::string_view field) {
  Scheme scheme{.fp8 = true};
  const std::vector<int64_t> sizes = config.integers(field, kBlock);
  if (sizes.empty()) return scheme;
  check(sizes.size() == 2, config.source(), config.describe(field), " has ", sizes.size(),
        " numbers, wanted 2");
  scheme.rows = sizes[0];
  scheme.columns = sizes[1];
  return scheme;
}

// Of a group of "compressed-tensors".
bool rounds_inputs(const JsonConfig& group) {
  if (group.is_off("input_activations")) return false;
  const JsonConfig inputs = group.section("input_activations");
  return inputs.text_or("type", "") == "float" && inputs.integer_or("num_bits", 0, {0, 64}) == 8;
}

// "compressed-tensors": its groups must agree; mixed: others may be integers.
Scheme read_groups(const JsonConfig& quantization, bool mixed) {
  const JsonConfig groups = quantization.section("config_groups");
  Scheme out;
  for (const std::string& name : groups.fields()) {
    const JsonConfig weights = groups.section(name).section("weights");
    if (mixed && weights.text_or("type", "") == "int") continue;
    check_weights(weights);
    Scheme scheme = read_blocks(weights, "block_structure");
    scheme.rounds_inputs = rounds_inputs(groups.section(name));
    if (out.fp8 && (scheme.rows != out.rows || scheme.columns != out.columns)) {
      fail(Code::unsupported, groups.source(), groups.describe(name),
           " has other blocks of scales than the groups before it");
    }
    if (out.fp8) scheme.rounds_inputs = scheme.rounds_inputs && out.rounds_inputs;
    out = scheme;
  }
  if (!out.fp8 && !mixed) {
    fail(Code::unsupported, quantization.source(), quantization.describe("config_groups"),
         " has no weights");
  }
  return out;
}

Scheme read_scheme(std::string_view config_json, const std::string& source) {
  if (config_json.empty()) return {};
  const JsonConfig config(config_json, source);
  if (config.is_off("quantization_config")) return {};
  const JsonConfig quantization = config.section("quantization_config");
  const std::string method = quantization.text_or("quant_method", "");
  if (method == "fp8") {
    Scheme scheme = read_blocks(quantization, "weight_block_size");
    scheme.rounds_inputs = !quantization.text_or("activation_scheme", "").empty();
    return scheme;
  }
  if (method == "modelopt") {
    if (has_float4_weights(config_json, source)) return {};
    if (quantization.text_or("quant_algo", "") != "FP8") {
      refuse(quantization, "quant_algo", "FP8, NVFP4 or W4A16_NVFP4");
    }
    return {.fp8 = true, .rounds_inputs = true};
  }
  if (method != "compressed-tensors") return {};
  const std::string format = quantization.text_or("format", "");
  if (format == "pack-quantized") return {};  // integers, see integer_folder.h
  if (has_float4_weights(config_json, source)) return {};
  const bool mixed = format == "mixed-precision";
  if (!mixed && format != "float-quantized" && format != "naive-quantized") {
    refuse(quantization, "format",
           "float-quantized, naive-quantized, pack-quantized, nvfp4-pack-quantized, "
           "mxfp4-pack-quantized or mixed-precision");
  }
  return read_groups(quantization, mixed);
}

std::string weight_of(std::string_view scale) {
  return cat(scale.substr(0, scale.rfind('.')), ".weight");
}

int64_t parts(int64_t size, int64_t each) {
  return (size + each - 1) / each;
}

// A matrix's scales, from its layer's tensor of scales.
Fp8Scales scales_of(const TensorEntry& matrix, const TensorEntry& scale, const Scheme& scheme) {
  check(matrix.shape.rank() == 2, matrix.source(), "tensor ", matrix.name, " is (", matrix.shape,
        "), wanted two axes beside its scale");
  const int64_t rows = matrix.shape[0], columns = matrix.shape[1];
  Fp8Scales out{.rows = std::max<int64_t>(rows, 1), .columns = std::max<int64_t>(columns, 1)};
  if (numel(scale.shape) != 1) {
    const bool blocks = scheme.rows > 0;
    if (blocks) out = {.rows = scheme.rows, .columns = scheme.columns};
    if (!blocks) out.rows = 1;
    const Shape wanted =
        blocks ? Shape{parts(rows, out.rows), parts(columns, out.columns)} : Shape{rows, 1};
    const bool flat = !blocks && scale.shape == Shape{rows};
    check(flat || scale.shape == wanted, scale.source(), "tensor ", scale.name, " is (",
          scale.shape, "), wanted (", wanted, ") for ", matrix.name, " of (", matrix.shape, ")");
  }
  out.rounds_inputs = scheme.rounds_inputs;
  out.values = std::make_shared<const std::vector<float>>(read_floats(scale));
  for (const float value : *out.values) {
    check(std::isfinite(value), scale.source(), "tensor ", scale.name, " holds ", value);
  }
  return out;
}

}  // namespace

bool is_activation_scale(std::string_view name) {
  return ends_with_any(name, kActivations);
}

bool has_fp8_weights(std::string_view config_json, const std::string& source) {
  return read_scheme(config_json, source).fp8;
}

std::vector<TensorEntry> with_fp8_scales(std::vector<TensorEntry> tensors,
                                         std::string_view config_json, const std::string& source) {
  const Scheme scheme = read_scheme(config_json, source);
  if (!scheme.fp8) return tensors;
  std::unordered_set<std::string> integers;
  for (const TensorEntry& entry : tensors) {
    if (entry.name.ends_with(kIntegers)) integers.insert(weight_of(entry.name));
  }
  std::unordered_map<std::string, TensorEntry> scales;
  std::vector<TensorEntry> out;
  for (TensorEntry& entry : tensors) {
    if (ends_with_any(entry.name, kScales) && !integers.contains(weight_of(entry.name))) {
      scales.emplace(weight_of(entry.name), std::move(entry));
    } else if (!is_activation_scale(entry.name)) {
      out.push_back(std::move(entry));
    }
  }
  for (TensorEntry& entry : out) {
    if (!is_fp8(entry)) continue;
    const auto scale = scales.find(entry.name);
    if (scale == scales.end()) {
      fail(Code::not_found, entry.source(), "tensor ", entry.name, " is stored as ", entry.dtype,
           " and has no weight_scale or weight_scale_inv beside it");
    }
    entry.scales = scales_of(entry, scale->second, scheme);
  }
  return out;
}

}  // namespace rbee::io
