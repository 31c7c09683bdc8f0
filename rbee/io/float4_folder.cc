#include "rbee/io/float4_folder.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "rbee/core/error.h"
#include "rbee/io/fp8_folder.h"
#include "rbee/io/integer_matrix.h"
#include "rbee/io/json_config.h"

namespace rbee::io {
namespace {

constexpr std::string_view kScale = ".weight_scale";

// config.json's settings.
struct Scheme {
  DType dtype = DType::f32;  // nvfp4 or mxfp4; f32: no such weights
  std::string_view words;    // the ending of a matrix's codes
  std::string_view whole;    // of the scale of a whole matrix; empty: there is none
  bool divides = false;      // that scale does

  int64_t group() const { return dtype == DType::nvfp4 ? 16 : 32; }
};

constexpr Scheme kModelopt{DType::nvfp4, ".weight", ".weight_scale_2", false};
constexpr Scheme kCompressedNvfp4{DType::nvfp4, ".weight_packed", ".weight_global_scale", true};
constexpr Scheme kCompressedMxfp4{DType::mxfp4, ".weight_packed", "", false};
constexpr Scheme kQuark{DType::mxfp4, ".weight", "", false};

[[noreturn]] void refuse(const JsonConfig& config, std::string_view field,
                         std::string_view wanted) {
  fail(Code::unsupported, config.source(), config.describe(field), " is \"",
       config.text_or(field, ""), "\", wanted ", wanted,
       "; take the original weights or a GGUF file");
}

void check_text(const JsonConfig& config, std::string_view field, std::string_view wanted) {
  if (config.text_or(field, "") != wanted) refuse(config, field, wanted);
}

void check_number(const JsonConfig& config, std::string_view field, int64_t wanted) {
  const int64_t value = config.integer_or(field, wanted, {0, 1 << 20});
  if (value == wanted) return;
  fail(Code::unsupported, config.source(), config.describe(field), " is ", value, ", wanted ",
       wanted, "; take the original weights or a GGUF file");
}

Scheme read_compressed(const JsonConfig& quantization) {
  const std::string format = quantization.text_or("format", "");
  const bool nvfp4 = format == "nvfp4-pack-quantized";
  if (!nvfp4 && format != "mxfp4-pack-quantized") return {};
  const Scheme scheme = nvfp4 ? kCompressedNvfp4 : kCompressedMxfp4;
  const JsonConfig groups = quantization.section("config_groups");
  for (const std::string& name : groups.fields()) {
    const JsonConfig weights = groups.section(name).section("weights");
    check_number(weights, "num_bits", 4);
    check_number(weights, "group_size", scheme.group());
    check_text(weights, "type", "float");
  }
  return scheme;
}

Scheme read_quark(const JsonConfig& quantization) {
  const JsonConfig weights = quantization.section("global_quant_config").section("weight");
  check_text(weights, "dtype", "fp4");
  check_text(weights, "qscheme", "per_group");
  check_number(weights, "group_size", kQuark.group());
  if (weights.has("scale_format")) check_text(weights, "scale_format", "e8m0");
  return kQuark;
}

Scheme read_scheme(std::string_view config_json, const std::string& source) {
  if (config_json.empty()) return {};
  const JsonConfig config(config_json, source);
  if (config.is_off("quantization_config")) return {};
  const JsonConfig quantization = config.section("quantization_config");
  const std::string method = quantization.text_or("quant_method", "");
  if (method == "modelopt") {
    const std::string algorithm = quantization.text_or("quant_algo", "");
    const bool nvfp4 = algorithm == "NVFP4" || algorithm == "W4A16_NVFP4";
    return nvfp4 ? kModelopt : Scheme{};
  }
  if (method == "compressed-tensors") return read_compressed(quantization);
  return method == "quark" ? read_quark(quantization) : Scheme{};
}

class Reader {
 public:
  Reader(const std::vector<TensorEntry>& tensors, const Scheme& scheme) : scheme_(scheme) {
    for (const TensorEntry& entry : tensors) by_name_.emplace(entry.name, &entry);
  }

  // Whether the tensor has the codes of a matrix.
  bool is_matrix(const TensorEntry& entry) const {
    return entry.name.ends_with(scheme_.words) && entry.dtype == DType::u8;
  }

  // The matrix, and its scale where it has one.
  void read(const TensorEntry& words, std::vector<TensorEntry>& out) {
    const std::string layer = words.name.substr(0, words.name.size() - scheme_.words.size());
    auto matrix = std::make_shared<IntegerMatrix>();
    matrix->order = IntegerMatrix::Order::e2m1;
    matrix->words = words;
    matrix->scales = take(cat(layer, kScale), words);
    matrix->group_size = scheme_.group();
    read_sizes(*matrix);
    check_scales(*matrix);
    if (!scheme_.whole.empty()) out.push_back(read_whole(layer, words));
    out.push_back({.name = cat(layer, ".weight"),
                   .dtype = scheme_.dtype,
                   .shape = Shape{matrix->rows, matrix->in},
                   .data = words.data,
                   .file = words.file,
                   .owner = words.owner,
                   .integers = matrix});
  }

  bool has_taken(const TensorEntry& entry) const { return taken_.contains(&entry); }

 private:
  const TensorEntry& take(const std::string& name, const TensorEntry& words) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) {
      fail(Code::not_found, words.source(), "tensor ", name, " is missing beside ", words.name);
    }
    taken_.insert(found->second);
    return *found->second;
  }

  void read_sizes(IntegerMatrix& matrix) const {
    const TensorEntry &words = matrix.words, &scales = matrix.scales;
    check(words.shape.rank() == 2, words.source(), "tensor ", words.name, " is (", words.shape,
          "), wanted two axes");
    matrix.rows = words.shape[0];
    matrix.in = 2 * words.shape[1];
    matrix.groups = matrix.in / matrix.group_size;
    const int64_t block = info(scheme_.dtype).block_size;
    if (matrix.in % block != 0) {
      fail(Code::unsupported, words.source(), "tensor ", words.name, " has rows of ", matrix.in,
           " inputs, which are no whole blocks of ", block, " for ", scheme_.dtype);
    }
    const DType wanted = scheme_.dtype == DType::nvfp4 ? DType::f8e4m3 : DType::u8;
    check(scales.dtype == wanted && scales.shape == Shape{matrix.rows, matrix.groups},
          scales.source(), "tensor ", scales.name, " is ", scales.dtype, " (", scales.shape,
          "), wanted ", wanted, " (", matrix.rows, ", ", matrix.groups, ")");
  }

  // Blocks have no sign of a scale, and no NaN.
  void check_scales(const IntegerMatrix& matrix) const {
    const bool e4m3 = scheme_.dtype == DType::nvfp4;
    const auto bad = [&](std::byte scale) { return scale >= std::byte(e4m3 ? 0x7f : 0xff); };
    const auto found = std::ranges::find_if(matrix.scales.data, bad);
    check(found == matrix.scales.data.end(), matrix.scales.source(), "tensor ", matrix.scales.name,
          " holds a scale that is negative or NaN");
  }

  TensorEntry read_whole(const std::string& layer, const TensorEntry& words) {
    const TensorEntry& entry = take(cat(layer, scheme_.whole), words);
    check(entry.dtype == DType::f32 && numel(entry.shape) == 1, entry.source(), "tensor ",
          entry.name, " is ", entry.dtype, " (", entry.shape, "), wanted one f32");
    const float value = read_floats(entry).front();
    check(std::isfinite(value) && value > 0, entry.source(), "tensor ", entry.name, " holds ",
          value, ", wanted a positive number");
    const auto made = std::make_shared<const float>(scheme_.divides ? 1 / value : value);
    return {.name = cat(layer, ".scale"),
            .dtype = DType::f32,
            .shape = Shape{1},
            .data = std::as_bytes(std::span(made.get(), 1)),
            .file = nullptr,
            .owner = made};
  }

  Scheme scheme_;
  std::unordered_map<std::string_view, const TensorEntry*> by_name_;
  std::unordered_set<const TensorEntry*> taken_;
};

}  // namespace

bool has_float4_weights(std::string_view config_json, const std::string& source) {
  return read_scheme(config_json, source).dtype != DType::f32;
}

std::vector<TensorEntry> with_float4_weights(std::vector<TensorEntry> tensors,
                                             std::string_view config_json,
                                             const std::string& source) {
  const Scheme scheme = read_scheme(config_json, source);
  if (scheme.dtype == DType::f32) return tensors;
  Reader reader(tensors, scheme);
  std::vector<TensorEntry> matrices, others;
  for (const TensorEntry& entry : tensors) {
    if (reader.is_matrix(entry)) reader.read(entry, matrices);
  }
  for (const TensorEntry& entry : tensors) {
    const bool left = reader.is_matrix(entry) || reader.has_taken(entry);
    if (!left && !is_activation_scale(entry.name)) others.push_back(entry);
  }
  std::ranges::move(matrices, std::back_inserter(others));
  return others;
}

}  // namespace rbee::io
