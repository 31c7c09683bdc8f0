#include "rbee/io/integer_folder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <unordered_map>

#include "rbee/core/error.h"
#include "rbee/core/half.h"
#include "rbee/io/fp8_folder.h"
#include "rbee/io/integer_matrix.h"
#include "rbee/io/json_config.h"

namespace rbee::io {
namespace {

using Order = IntegerMatrix::Order;

constexpr IntegerRange kBits{1, 64};
constexpr IntegerRange kGroup{-1, int64_t{1} << 20};
constexpr int kGptqBits[] = {2, 3, 4, 8};
constexpr int64_t kBlock = 32;  // elements of q4_0, q4_1 and q8_0

// The endings of a layer's tensors; the first is that of its codes.
struct Names {
  std::string_view words, scales, zeros, groups, shape;
};
constexpr Names kGptqNames{".qweight", ".scales", ".qzeros", ".g_idx", ""};
constexpr Names kCompressedNames{".weight_packed", ".weight_scale", ".weight_zero_point",
                                 ".weight_g_idx", ".weight_shape"};

// config.json's settings of matrices.
struct Scheme {
  Order order = Order::rows;
  int bits = 4;
  int64_t group = -1;   // inputs; -1: a whole row
  bool zeros = true;    // zero points must exist
  bool listed = false;  // a list of groups must exist
  bool varies = false;  // shapes set bits and groups
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
  const std::string format = config.text_or("checkpoint_format", "gptq");
  if (format != "gptq" && format != "gptq_v2") {
    refuse(config, "checkpoint_format", cat("\"", format, "\""), "gptq or gptq_v2");
  }
  if (config.flag_or("is_marlin_format", false)) {
    refuse(config, "is_marlin_format", "true", "false");
  }
  check_text(config, "pack_dtype", "int32");
  const bool varies = !config.is_off("dynamic");
  return {.order = Order::columns,
          .bits = read_bits(config, "bits", kGptqBits, "2, 3, 4 or 8"),
          .group = read_group(config),
          .listed = varies || config.flag_or("desc_act", false),
          .varies = varies,
          .zero_offset = format == "gptq" ? 1 : 0};
}

Scheme read_compressed(const JsonConfig& group) {
  constexpr int kRead[] = {4, 8};
  check_text(group, "format", "pack-quantized");
  const JsonConfig weights = group.section("weights");
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

// Mixed: other readers handle groups of floats.
std::vector<Scheme> read_compressed_groups(const JsonConfig& config, bool mixed) {
  const JsonConfig groups = config.section("config_groups");
  std::vector<Scheme> schemes;
  for (const std::string& name : groups.fields()) {
    const JsonConfig group = groups.section(name);
    if (mixed && group.section("weights").text_or("type", "") == "float") continue;
    schemes.push_back(read_compressed(group));
  }
  if (schemes.empty() && !mixed) {
    fail(Code::unsupported, config.source(), config.describe("config_groups"), " has no weights");
  }
  return schemes;
}

// None: the weights are not such integers.
std::vector<Scheme> read_schemes(std::string_view config_json, const std::string& source) {
  if (config_json.empty()) return {};
  const JsonConfig config(config_json, source);
  if (config.is_off("quantization_config")) return {};
  const JsonConfig quantization = config.section("quantization_config");
  const std::string method = quantization.text_or("quant_method", "");
  if (method == "awq") return {read_awq(quantization)};
  if (method == "gptq") return {read_gptq(quantization)};
  if (method != "compressed-tensors") return {};
  const std::string format = quantization.text_or("format", "");
  const bool mixed = format == "mixed-precision";
  if (!mixed && format != "pack-quantized") return {};
  return read_compressed_groups(quantization, mixed);
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

// Tensors by their names; read_matrix takes out those of integer matrices.
class Tensors {
 public:
  explicit Tensors(std::vector<TensorEntry> tensors) : tensors_(std::move(tensors)) {
    for (size_t i = 0; i < tensors_.size(); ++i) index_.emplace(tensors_[i].name, i);
  }

  const TensorEntry* find(const std::string& name) const {
    const auto found = index_.find(name);
    return found == index_.end() ? nullptr : &tensors_[found->second];
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
      if (!taken_[i] && !is_activation_scale(tensors_[i].name)) out.push_back(tensors_[i]);
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

// Whether rows with inputs in this order are blocks of inputs of one group.
bool has_whole_blocks(const IntegerMatrix& matrix, std::span<const int32_t> order) {
  if (matrix.in % kBlock != 0) return false;
  const auto group_at = [&](int64_t place) {
    return matrix.group_at(order.empty() ? place : order[static_cast<size_t>(place)]);
  };
  for (int64_t place = 0; place < matrix.in; ++place) {
    if (group_at(place) != group_at(place / kBlock * kBlock)) return false;
  }
  return true;
}

// All inputs, group by group, in their order within each group.
std::vector<int32_t> inputs_by_group(const IntegerMatrix& matrix) {
  std::vector<int32_t> order(static_cast<size_t>(matrix.in));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int32_t input) { return matrix.group_at(input); });
  return order;
}

// The effect of f16 on the scales.
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
    // A group of nearly zero must not make the whole matrix wide.
    range.close = range.close && error <= std::max(size * 0x1p-11f, range.highest * 0x1p-18f);
    range.normal = range.normal && (size == 0 || size >= 0x1p-14f);
  }
  return range;
}

constexpr float kHighest = 65504;  // of f16

// The type for blocks of inputs of one group, if one holds them.
std::optional<DType> block_type(const IntegerMatrix& matrix, const ScaleRange& scales) {
  const bool middle = matrix.zeros.data.empty(), small = matrix.bits <= 4;
  if (!scales.close) return std::nullopt;
  if (middle) return small ? DType::q4_0 : DType::q8_0;
  const auto zero = static_cast<float>(2 * matrix.middle());
  if (small && scales.highest * zero <= kHighest) return DType::q4_1;
  return std::nullopt;
}

// The type for the rows as they are; leaves in the matrix the type for another order of inputs.
DType choose_type(IntegerMatrix& matrix) {
  const ScaleRange scales = range_of(matrix.scales);
  const std::optional<DType> blocks = block_type(matrix, scales);
  if (blocks && has_whole_blocks(matrix, {})) return *blocks;
  if (blocks && !matrix.group_of.empty()) {
    std::vector<int32_t> order = inputs_by_group(matrix);
    if (has_whole_blocks(matrix, order)) {
      matrix.inputs_by_group = std::move(order);
      matrix.grouped_type = *blocks;
    }
  }
  const auto code = static_cast<float>(2 * matrix.middle());
  return scales.normal && scales.highest * code <= kHighest ? DType::f16 : DType::bf16;
}

// The name without the expert's number; empty if there is none.
std::string stack_of(std::string_view name) {
  constexpr std::string_view kExperts = ".experts.";
  const size_t at = name.find(kExperts);
  if (at == name.npos) return {};
  const size_t number = at + kExperts.size(), end = name.find('.', number);
  return end == name.npos ? std::string() : cat(name.substr(0, number), name.substr(end));
}

// A tensor holds all experts of a stack, so all take the type that the most demanding needs: each
// of these types holds what those before it do.
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

std::string layer_of(const TensorEntry& words, const Names& names) {
  return words.name.substr(0, words.name.size() - names.words.size());
}

// For GPTQ modules with settings of their own: the list of groups has the inputs.
Scheme scheme_of_shapes(const Tensors& tensors, const TensorEntry& words, Scheme scheme) {
  const std::string layer = layer_of(words, kGptqNames);
  const TensorEntry* list = tensors.find(cat(layer, kGptqNames.groups));
  const TensorEntry* scales = tensors.find(cat(layer, kGptqNames.scales));
  if (list == nullptr || scales == nullptr) return scheme;  // read_matrix names it
  const bool known = list->shape.rank() == 1 && list->shape[0] > 0 && scales->shape.rank() == 2 &&
                     scales->shape[0] > 0 && words.shape.rank() == 2;
  check(known, words.source(), "tensors ", words.name, " (", words.shape, "), ", list->name, " (",
        list->shape, ") and ", scales->name, " (", scales->shape, ") are no matrix and its groups");
  const int64_t in = list->shape[0];
  const auto fits = [&](int bits) { return words.shape[0] * 32 == in * bits; };
  const auto* const bits = std::ranges::find_if(kGptqBits, fits);
  check(bits != std::end(kGptqBits), words.source(), "tensor ", words.name, " is (", words.shape,
        "), which is not 2, 3, 4 or 8 bits for each of the ", in, " inputs of ", list->name);
  scheme.bits = *bits;
  scheme.group = parts(in, scales->shape[0]);
  check(parts(in, scheme.group) == scales->shape[0], scales->source(), "tensor ", scales->name,
        " has ", scales->shape[0], " groups for ", in, " inputs");
  return scheme;
}

// The one of several that fits a compressed-tensors matrix's shapes.
Scheme fitting_scheme(const Tensors& tensors, const TensorEntry& words,
                      std::span<const Scheme> schemes) {
  const std::string layer = layer_of(words, kCompressedNames);
  const TensorEntry* shape = tensors.find(cat(layer, kCompressedNames.shape));
  const TensorEntry* scales = tensors.find(cat(layer, kCompressedNames.scales));
  const bool zeros = tensors.find(cat(layer, kCompressedNames.zeros)) != nullptr;
  if (shape == nullptr || scales == nullptr) return schemes.front();  // read_matrix names it
  IntegerMatrix matrix;
  matrix.words = words;
  read_shape(*shape, matrix);
  for (const Scheme& scheme : schemes) {
    const int64_t groups = scheme.group < 0 ? 1 : parts(matrix.in, scheme.group);
    const bool fits = words.shape == Shape{matrix.rows, parts(matrix.in * scheme.bits, 32)} &&
                      scales->shape == Shape{matrix.rows, groups};
    if (fits && scheme.zeros == zeros) return scheme;
  }
  fail(Code::invalid_argument, words.source(), "tensors ", words.name, " (", words.shape, ") and ",
       scales->name, " (", scales->shape, ") fit none of the config's ", schemes.size(),
       " groups of weights");
}

Scheme scheme_for(const Tensors& tensors, const TensorEntry& words,
                  std::span<const Scheme> schemes) {
  if (schemes.size() > 1) return fitting_scheme(tensors, words, schemes);
  const Scheme& only = schemes.front();
  return only.varies ? scheme_of_shapes(tensors, words, only) : only;
}

TensorEntry read_matrix(Tensors& tensors, const TensorEntry& words, const Scheme& scheme) {
  const Names& names = scheme.names();
  const std::string layer = layer_of(words, names);
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
          .dtype = choose_type(*matrix),
          .shape = Shape{matrix->rows, matrix->in},
          .data = matrix->words.data,
          .file = matrix->words.file,
          .owner = matrix->words.owner,
          .integers = matrix};
}

}  // namespace

bool has_integer_weights(std::string_view config_json, const std::string& source) {
  return !read_schemes(config_json, source).empty();
}

std::vector<TensorEntry> with_integer_weights(std::vector<TensorEntry> tensors,
                                              std::string_view config_json,
                                              const std::string& source) {
  const std::vector<Scheme> schemes = read_schemes(config_json, source);
  if (schemes.empty()) return tensors;
  Tensors stored(std::move(tensors));
  std::vector<TensorEntry> matrices;
  for (const TensorEntry& entry : stored.all()) {
    if (!entry.name.ends_with(schemes.front().names().words)) continue;
    matrices.push_back(read_matrix(stored, entry, scheme_for(stored, entry, schemes)));
  }
  make_stacks_even(matrices);
  std::vector<TensorEntry> out = stored.others();
  std::ranges::move(matrices, std::back_inserter(out));
  return out;
}

}  // namespace rbee::io
