#include "rbee/io/integer_folder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "rbee/core/error.h"
#include "rbee/core/half.h"
#include "rbee/io/integer_matrix.h"
#include "rbee/io/json_config.h"

namespace rbee::io {
namespace {

using Order = IntegerMatrix::Order;

constexpr IntegerRange kBits{1, 64};
constexpr IntegerRange kGroup{-1, int64_t{1} << 20};
constexpr int64_t kBlock = 32;  // elements of q4_0, q4_1 and q8_0

// The endings of a layer's tensors; the first is that of its codes.
struct Names {
  std::string_view words, scales, zeros, groups, shape;
};
constexpr Names kGptqNames{".qweight", ".scales", ".qzeros", ".g_idx", ""};
constexpr Names kCompressedNames{".weight_packed", ".weight_scale", ".weight_zero_point",
                                 ".weight_g_idx", ".weight_shape"};

// What config.json says of all matrices.
struct Scheme {
  Order order = Order::rows;
  int bits = 4;
  int64_t group = -1;   // inputs; -1: a whole row
  bool zeros = true;    // there have to be some
  bool listed = false;  // there has to be a list of groups
  int zero_offset = 0;
  const Names& names() const { return order == Order::rows ? kCompressedNames : kGptqNames; }
};

[[noreturn]] void refuse(const JsonConfig& config, std::string_view field, std::string_view value,
                         std::string_view wanted) {
  fail(Code::unsupported, config.source(), config.describe(field), " is ", value, ", wanted ",
       wanted, "; take the original weights or a GGUF file");
}

void check_text(const JsonConfig& config, std::string_view field, std::string_view wanted) {
  const std::string text = config.text_or(field, wanted);
  if (text != wanted) refuse(config, field, cat("\"", text, "\""), wanted);
}

int read_bits(const JsonConfig& config, std::string_view field, std::span<const int> read,
              std::string_view wanted) {
  const auto bits = static_cast<int>(config.integer(field, kBits));
  if (std::ranges::find(read, bits) == read.end()) refuse(config, field, cat(bits), wanted);
  return bits;
}

int64_t read_group(const JsonConfig& config) {
  const int64_t group = config.integer("group_size", kGroup);
  check(group != 0, config.source(), config.describe("group_size"),
        " is 0, wanted -1 or from 1 to ", kGroup.highest);
  return group;
}

Scheme read_awq(const JsonConfig& config) {
  constexpr int kRead[] = {4};
  check_text(config, config.has("version") ? "version" : "checkpoint_format", "gemm");
  return {.order = Order::awq,
          .bits = read_bits(config, "bits", kRead, "4"),
          .group = read_group(config)};
}

Scheme read_gptq(const JsonConfig& config) {
  constexpr int kRead[] = {2, 3, 4, 8};
  const std::string format = config.text_or("checkpoint_format", "gptq");
  if (format != "gptq" && format != "gptq_v2") {
    refuse(config, "checkpoint_format", cat("\"", format, "\""), "gptq or gptq_v2");
  }
  if (config.flag_or("is_marlin_format", false)) {
    refuse(config, "is_marlin_format", "true", "false");
  }
  check_text(config, "pack_dtype", "int32");
  return {.order = Order::columns,
          .bits = read_bits(config, "bits", kRead, "2, 3, 4 or 8"),
          .group = read_group(config),
          .listed = config.flag_or("desc_act", false),
          .zero_offset = format == "gptq" ? 1 : 0};
}

Scheme read_compressed(const JsonConfig& config) {
  constexpr int kRead[] = {4, 8};
  const JsonConfig groups = config.section("config_groups");
  const std::vector<std::string> names = groups.fields();
  if (names.size() != 1) {
    fail(Code::unsupported, groups.source(), names.size(),
         " groups of weights quantised in different ways, wanted one");
  }
  const JsonConfig weights = groups.section(names.front()).section("weights");
  check_text(weights, "type", "int");
  const std::string strategy = weights.text_or("strategy", "");
  if (strategy != "group" && strategy != "channel") {
    refuse(weights, "strategy", cat("\"", strategy, "\""), "group or channel");
  }
  return {.order = Order::rows,
          .bits = read_bits(weights, "num_bits", kRead, "4 or 8"),
          .group = strategy == "group" ? read_group(weights) : -1,
          .zeros = !weights.flag_or("symmetric", true)};
}

std::optional<Scheme> read_scheme(std::string_view config_json, const std::string& source) {
  if (config_json.empty()) return std::nullopt;
  const JsonConfig config(config_json, source);
  if (config.is_off("quantization_config")) return std::nullopt;
  const JsonConfig quantization = config.section("quantization_config");
  const std::string method = quantization.text_or("quant_method", "");
  if (method == "awq") return read_awq(quantization);
  if (method == "gptq") return read_gptq(quantization);
  if (method == "compressed-tensors" && quantization.text_or("format", "") == "pack-quantized") {
    return read_compressed(quantization);
  }
  return std::nullopt;
}

int64_t parts(int64_t size, int64_t each) {
  return (size + each - 1) / each;
}

void check_shape(const TensorEntry& entry, const Shape& wanted, std::string_view of) {
  check(entry.shape == wanted, entry.source(), "tensor ", entry.name, " is (", entry.shape,
        "), wanted (", wanted, ") for ", of);
}

void check_type(const TensorEntry& entry, DType wanted) {
  check(entry.dtype == wanted, entry.source(), "tensor ", entry.name, " is stored as ", entry.dtype,
        ", wanted ", wanted);
}

// Tensors by their names, of which those of integer matrices are taken out.
class Tensors {
 public:
  explicit Tensors(std::vector<TensorEntry> tensors) : tensors_(std::move(tensors)) {
    for (size_t i = 0; i < tensors_.size(); ++i) index_.emplace(tensors_[i].name, i);
  }

  std::optional<TensorEntry> take(const std::string& name) {
    const auto found = index_.find(name);
    if (found == index_.end()) return std::nullopt;
    taken_.resize(tensors_.size());
    taken_[found->second] = true;
    return tensors_[found->second];
  }

  TensorEntry require(const std::string& name, const TensorEntry& words) {
    std::optional<TensorEntry> entry = take(name);
    if (!entry) {
      fail(Code::not_found, words.source(), "tensor ", name, " is missing beside ", words.name);
    }
    return *std::move(entry);
  }

  const std::vector<TensorEntry>& all() const { return tensors_; }

  std::vector<TensorEntry> others() {
    taken_.resize(tensors_.size());
    std::vector<TensorEntry> out;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (!taken_[i]) out.push_back(tensors_[i]);
    }
    return out;
  }

 private:
  std::vector<TensorEntry> tensors_;
  std::unordered_map<std::string, size_t> index_;
  std::vector<bool> taken_;
};

// (out, in) of compressed-tensors' matrices, which their words may exceed.
void read_shape(const TensorEntry& entry, IntegerMatrix& matrix) {
  check_type(entry, DType::i64);
  check_shape(entry, Shape{2}, matrix.words.name);
  int64_t sizes[2];
  std::memcpy(sizes, entry.data.data(), sizeof sizes);
  constexpr int64_t kHighest = int64_t{1} << 31;
  check(sizes[0] >= 1 && sizes[1] >= 1 && sizes[0] <= kHighest && sizes[1] <= kHighest,
        entry.source(), "tensor ", entry.name, " says (", sizes[0], ", ", sizes[1],
        "), wanted sizes from 1 to ", kHighest);
  matrix.rows = sizes[0];
  matrix.in = sizes[1];
}

void read_sizes(Tensors& tensors, const std::string& layer, IntegerMatrix& matrix) {
  const TensorEntry& words = matrix.words;
  check_type(words, DType::i32);
  check(words.shape.rank() == 2 && !words.data.empty(), words.source(), "tensor ", words.name,
        " is (", words.shape, "), wanted two axes with elements");
  if (matrix.order == Order::awq) {
    matrix.in = words.shape[0];
    matrix.rows = words.shape[1] * 8;
  } else if (matrix.order == Order::columns) {
    matrix.in = words.shape[0] * 32 / matrix.bits;
    matrix.rows = words.shape[1];
    const bool whole = words.shape[0] * 32 % matrix.bits == 0;
    check(whole && matrix.rows * matrix.bits % 32 == 0, words.source(), "tensor ", words.name,
          " is (", words.shape, "), wanted whole words of codes of ", matrix.bits,
          " bits along both axes");
  } else {
    read_shape(tensors.require(cat(layer, kCompressedNames.shape), words), matrix);
    check_shape(words, {matrix.rows, parts(matrix.in * matrix.bits, 32)},
                cat(matrix.bits, " bits of (", matrix.rows, ", ", matrix.in, ")"));
  }
}

void read_scales(TensorEntry scales, IntegerMatrix& matrix) {
  const bool by_rows = matrix.order == Order::rows;
  const Shape wanted =
      by_rows ? Shape{matrix.rows, matrix.groups} : Shape{matrix.groups, matrix.rows};
  check_shape(scales, wanted, matrix.words.name);
  const DType type = scales.dtype;
  check(type == DType::f16 || type == DType::bf16 || type == DType::f32, scales.source(), "tensor ",
        scales.name, " is stored as ", type, ", wanted f16, bf16 or f32");
  matrix.scales = std::move(scales);
}

void read_zeros(TensorEntry zeros, IntegerMatrix& matrix) {
  check_type(zeros, DType::i32);
  const bool by_rows = matrix.order == Order::rows;
  const int64_t words = parts(matrix.rows * matrix.bits, 32);
  check_shape(zeros, by_rows ? Shape{words, matrix.groups} : Shape{matrix.groups, words},
              matrix.words.name);
  matrix.zeros = std::move(zeros);
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t group = 0; group < matrix.groups; ++group) {
      if (zero_at(matrix, row, group) != matrix.middle()) return;
    }
  }
  matrix.zeros = {};
}

void read_groups(const TensorEntry& list, IntegerMatrix& matrix) {
  check_type(list, DType::i32);
  check_shape(list, Shape{matrix.in}, matrix.words.name);
  std::vector<int32_t> group_of(static_cast<size_t>(matrix.in));
  std::memcpy(group_of.data(), list.data.data(), list.data.size());
  bool in_order = true;
  for (int64_t input = 0; input < matrix.in; ++input) {
    const int32_t group = group_of[static_cast<size_t>(input)];
    check(group >= 0 && group < matrix.groups, list.source(), "tensor ", list.name, " puts input ",
          input, " into group ", group, " of ", matrix.groups);
    in_order = in_order && group == input / matrix.group_size;
  }
  if (!in_order) matrix.group_of = std::move(group_of);
}

bool has_whole_blocks(const IntegerMatrix& matrix) {
  if (matrix.in % kBlock != 0) return false;
  for (int64_t input = 0; input < matrix.in; ++input) {
    if (matrix.group_at(input) != matrix.group_at(input / kBlock * kBlock)) return false;
  }
  return true;
}

// What f16 makes of the scales.
struct ScaleRange {
  float highest = 0;   // magnitude
  bool close = true;   // each is within 2^-11 of itself, or 2^-18 of the highest
  bool normal = true;  // each is zero or no subnormal number
};

ScaleRange range_of(const TensorEntry& scales) {
  const std::vector<float> values = read_floats(scales);
  ScaleRange range;
  for (const float scale : values) {
    check(std::isfinite(scale), scales.source(), "tensor ", scales.name, " holds ", scale);
    range.highest = std::max(range.highest, std::fabs(scale));
  }
  for (const float scale : values) {
    const float size = std::fabs(scale);
    const float error = std::fabs(to_float(to_f16(size)) - size);
    // A group of next to nothing must not make the whole matrix wide.
    range.close = range.close && error <= std::max(size * 0x1p-11f, range.highest * 0x1p-18f);
    range.normal = range.normal && (size == 0 || size >= 0x1p-14f);
  }
  return range;
}

DType type_of(const IntegerMatrix& matrix) {
  constexpr float kHighest = 65504;  // of f16
  const ScaleRange scales = range_of(matrix.scales);
  const bool middle = matrix.zeros.data.empty(), small = matrix.bits <= 4;
  if (scales.close && has_whole_blocks(matrix)) {
    if (middle) return small ? DType::q4_0 : DType::q8_0;
    const auto zero = static_cast<float>(2 * matrix.middle());
    if (small && scales.highest * zero <= kHighest) return DType::q4_1;
  }
  const auto code = static_cast<float>(2 * matrix.middle());
  return scales.normal && scales.highest * code <= kHighest ? DType::f16 : DType::bf16;
}

// The name without the expert's number; empty where there is none.
std::string stack_of(std::string_view name) {
  constexpr std::string_view kExperts = ".experts.";
  const size_t at = name.find(kExperts);
  if (at == name.npos) return {};
  const size_t number = at + kExperts.size(), end = name.find('.', number);
  return end == name.npos ? std::string() : cat(name.substr(0, number), name.substr(end));
}

// Experts lie in one tensor, so that all of a stack take the type that the most demanding needs:
// each of these holds what those before it do.
void make_stacks_even(std::span<TensorEntry> matrices) {
  constexpr DType kWider[] = {DType::q4_0, DType::q8_0, DType::q4_1, DType::f16, DType::bf16};
  const auto rank = [&](DType dtype) { return std::ranges::find(kWider, dtype); };
  std::unordered_map<std::string, DType> types;
  for (const TensorEntry& matrix : matrices) {
    const std::string stack = stack_of(matrix.name);
    if (stack.empty()) continue;
    DType& type = types.emplace(stack, matrix.dtype).first->second;
    if (rank(matrix.dtype) > rank(type)) type = matrix.dtype;
  }
  for (TensorEntry& matrix : matrices) {
    const auto found = types.find(stack_of(matrix.name));
    if (found != types.end()) matrix.dtype = found->second;
  }
}

TensorEntry read_matrix(Tensors& tensors, const TensorEntry& words, const Scheme& scheme) {
  const Names& names = scheme.names();
  const std::string layer = words.name.substr(0, words.name.size() - names.words.size());
  auto matrix = std::make_shared<IntegerMatrix>();
  matrix->order = scheme.order;
  matrix->bits = scheme.bits;
  matrix->zero_offset = scheme.zero_offset;
  matrix->words = *tensors.take(words.name);
  read_sizes(tensors, layer, *matrix);
  matrix->group_size = scheme.group < 0 ? matrix->in : scheme.group;
  matrix->groups = parts(matrix->in, matrix->group_size);
  read_scales(tensors.require(cat(layer, names.scales), words), *matrix);
  const std::string zeros = cat(layer, names.zeros), groups = cat(layer, names.groups);
  if (scheme.zeros) read_zeros(tensors.require(zeros, words), *matrix);
  const std::optional<TensorEntry> list =
      scheme.listed ? tensors.require(groups, words) : tensors.take(groups);
  if (list) read_groups(*list, *matrix);
  return {.name = cat(layer, ".weight"),
          .dtype = type_of(*matrix),
          .shape = Shape{matrix->rows, matrix->in},
          .data = matrix->words.data,
          .file = matrix->words.file,
          .owner = matrix->words.owner,
          .integers = matrix};
}

}  // namespace

bool has_integer_weights(std::string_view config_json, const std::string& source) {
  return read_scheme(config_json, source).has_value();
}

std::vector<TensorEntry> with_integer_weights(std::vector<TensorEntry> tensors,
                                              std::string_view config_json,
                                              const std::string& source) {
  const std::optional<Scheme> scheme = read_scheme(config_json, source);
  if (!scheme) return tensors;
  Tensors stored(std::move(tensors));
  std::vector<TensorEntry> matrices;
  for (const TensorEntry& entry : stored.all()) {
    if (!entry.name.ends_with(scheme->names().words)) continue;
    matrices.push_back(read_matrix(stored, entry, *scheme));
  }
  make_stacks_even(matrices);
  std::vector<TensorEntry> out = stored.others();
  std::ranges::move(matrices, std::back_inserter(out));
  return out;
}

}  // namespace rbee::io
