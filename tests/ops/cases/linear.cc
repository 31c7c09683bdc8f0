// y = x * weight^T + bias with weights of every type, plain and in the layout of GPUs' kernels.
// tests/linear has the CPU's packed weights.
#include "tests/support/block_types.h"
#include "tests/support/dot.h"
#include "tests/support/op_table.h"
#include "tests/support/packed.h"

namespace rbee::harness {
namespace {

struct LinearCase {
  int64_t rows = 1, in = 1;
  std::vector<int64_t> outs = {1};  // one part each
  DType weight = DType::f32;
  DType dtype = DType::f32;  // of x, bias and y
  bool bias = false;
  bool packed = false;  // on GPUs; the reference reads the plain weight
  bool big = false;
  double largest = 2;  // of x
  DType may_round_to = DType::f32;
  bool one_scale = false;           // of f8_g128
  std::vector<DType> weights = {};  // of each part; empty: `weight`

  DType weight_of(size_t part) const { return weights.empty() ? weight : weights[part]; }
};

// For few and many rows of x: rows of the weight that fill one step of a kernel, several, or are
// shared by waves.
void add_packed(DType weight, std::vector<LinearCase>& out) {
  const int64_t block = info(weight).block_size;
  const auto add = [&](int64_t rows, int64_t in, std::vector<int64_t> outs, DType dtype) {
    out.push_back({.rows = rows,
                   .in = in,
                   .outs = std::move(outs),
                   .weight = weight,
                   .dtype = dtype,
                   .bias = rows > 1,
                   .packed = true});
  };
  add(1, block, {3}, DType::f32);
  add(1, 1280, {35}, DType::f32);
  add(1, 10240, {3}, DType::f16);
  add(3, 2304, {9, 18}, DType::bf16);
  add(4, 5120, {6}, DType::f32);
  add(7, 768, {21}, DType::f16);
  add(8, 4608, {5}, DType::f32);
  add(9, 768, {21, 40}, DType::bf16);
  add(17, 1280, {33}, DType::f16);
  add(19, 512, {33}, DType::f32);
  add(28, block == 32 ? 1184 : 1280, {115, 3}, DType::bf16);
  add(40, 512, {70}, DType::bf16);
  add(64, block, {230}, DType::f16);
}

// Rows for tiles over packed weights: partial and whole tiles of weights and of x, depths that
// blocks share, also with several others, and one that they do not.
void add_tall_packed(DType weight, std::vector<LinearCase>& out) {
  const auto add = [&](int64_t rows, int64_t in, std::vector<int64_t> outs, DType dtype) {
    out.push_back({.rows = rows,
                   .in = in,
                   .outs = std::move(outs),
                   .weight = weight,
                   .dtype = dtype,
                   .bias = rows < 200,
                   .packed = true});
  };
  add(33, 2304, {24, 264}, DType::bf16);
  add(65, 256, {40, 136}, DType::f16);
  add(130, 1024, {264}, DType::bf16);
  add(257, 512, {8, 392}, DType::f32);
}

// Rows for matrix instructions: partial tiles, whole ones and several; rows of x that end inside a
// step, and one that 16-byte reads cannot be used for.
void add_many(DType weight, DType dtype, std::vector<LinearCase>& out) {
  const auto add = [&](int64_t rows, int64_t in, std::vector<int64_t> outs) {
    out.push_back({.rows = rows,
                   .in = in,
                   .outs = std::move(outs),
                   .weight = weight,
                   .dtype = dtype,
                   .bias = rows < 70});
  };
  add(9, 16, {2});
  add(20, 80, {24, 7});
  add(64, 37, {5});
  add(70, 112, {65});
  add(130, 64, {192});
}

// Few rows and 16-bit weights of x's type: depths that blocks share, in whole units of 128 elements
// or not, tiles over several parts, and each row count with its own kernel.
void add_few_plain(DType dtype, std::vector<LinearCase>& out) {
  const auto add = [&](int64_t rows, int64_t in, std::vector<int64_t> outs, bool bias) {
    out.push_back({.rows = rows,
                   .in = in,
                   .outs = std::move(outs),
                   .weight = dtype,
                   .dtype = dtype,
                   .bias = bias});
  };
  add(9, 264, {5}, false);
  add(16, 1032, {130}, true);
  add(17, 128, {9}, true);
  add(32, 904, {24, 140, 7}, true);
  add(33, 256, {40}, false);
  add(64, 1032, {65}, true);
}

// A network's layers that share an input: more than a launch takes, some of them empty.
void add_network(std::vector<LinearCase>& out) {
  std::vector<int64_t> outs;
  for (int64_t i = 0; i < 30; ++i) outs.push_back(i % 7 == 3 ? 0 : 8 + 5 * i);
  for (const int64_t rows : {1, 2, 12, 20}) {
    for (const DType dtype : {DType::f16, DType::bf16}) {
      out.push_back(
          {.rows = rows, .in = 192, .outs = outs, .weight = dtype, .dtype = dtype, .bias = true});
    }
  }
}

// x in f32 with 16-bit weights: values beyond f16's range and below its normal numbers; more
// results than one sum; parts of several types; x that may be rounded.
void add_wide_x(std::vector<LinearCase>& out) {
  for (const DType weight : {DType::f16, DType::bf16, DType::f8e4m3}) {
    out.push_back({.rows = 12, .in = 264, .outs = {40}, .weight = weight, .largest = 3e5});
    out.push_back({.rows = 12, .in = 264, .outs = {40}, .weight = weight, .largest = 1e-9});
    out.push_back({.rows = 70, .in = 1032, .outs = {65}, .weight = weight, .bias = true});
  }
  out.push_back({.rows = 1030, .in = 8, .outs = {2800}, .weight = DType::bf16, .bias = true});
  out.push_back({.rows = 33, .in = 64, .outs = {24, 9}, .weights = {DType::f16, DType::f32}});
  out.push_back({.rows = 33,
                 .in = 64,
                 .outs = {24, 9, 40},
                 .packed = true,
                 .weights = {DType::bf16, DType::f16, DType::q8_0}});
  for (const DType rounded : {DType::f16, DType::bf16}) {
    for (const DType weight : {DType::f16, DType::bf16, DType::f8e4m3, DType::q6_k}) {
      out.push_back({.rows = 20,
                     .in = 256,
                     .outs = {24},
                     .weight = weight,
                     .bias = true,
                     .packed = is_quantized(weight),
                     .may_round_to = rounded});
    }
  }
}

// With such weights, x may be rounded to e4m3: whole and partial tiles, scales for each output and
// one for all, depths that blocks share.
void add_e4m3(std::vector<LinearCase>& out) {
  const auto add = [&](int64_t rows, int64_t in, std::vector<int64_t> outs, DType dtype) {
    for (const bool one_scale : {false, true}) {
      out.push_back({.rows = rows,
                     .in = in,
                     .outs = outs,
                     .weight = DType::f8_g128,
                     .dtype = dtype,
                     .bias = dtype != DType::f32,
                     .packed = true,
                     .may_round_to = DType::f8e4m3,
                     .one_scale = one_scale});
    }
  };
  add(65, 128, {8}, DType::bf16);
  add(130, 640, {264, 40}, DType::f16);
  add(257, 1152, {136}, DType::f32);
  add(70, 4224, {392}, DType::bf16);
}

// Hundreds of rows, partial tiles, and depths that blocks share.
void add_tall(DType dtype, std::vector<LinearCase>& out) {
  out.push_back({.rows = 300, .in = 72, .outs = {264, 8}, .weight = dtype, .dtype = dtype});
  out.push_back(
      {.rows = 65, .in = 4104, .outs = {392}, .weight = dtype, .dtype = dtype, .bias = true});
  out.push_back(
      {.rows = 520, .in = 1288, .outs = {520}, .weight = dtype, .dtype = dtype, .bias = true});
}

// Adapters' factors: a few numbers per row, rows of x in fours, after them, and in a product.
void add_plain(std::vector<LinearCase>& out) {
  for (const int64_t rows : {1, 2, 3, 7, 9}) {
    for (const int64_t in : {8, 16, 24, 61, 130})
      out.push_back({.rows = rows, .in = in, .outs = {37, 5}});
  }
}

std::vector<LinearCase> cases() {
  std::vector<LinearCase> out;
  add_plain(out);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const DType weight : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::f8e4m3}) {
      out.push_back({.rows = 3, .in = 37, .outs = {17}, .weight = weight, .dtype = dtype});
    }
    out.push_back({.rows = 5, .in = 64, .outs = {9, 1, 33}, .dtype = dtype, .bias = true});
  }
  for (const DType weight : test::block_types()) {
    const int64_t block = info(weight).block_size;
    out.push_back({.rows = 1, .in = 3 * block, .outs = {19}, .weight = weight});
    out.push_back({.rows = 6, .in = block, .outs = {4, 7}, .weight = weight, .bias = true});
    add_packed(weight, out);
    add_tall_packed(weight, out);
  }
  for (const DType weight : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      out.push_back({.rows = 1, .in = 2064, .outs = {35}, .weight = weight, .dtype = dtype});
      out.push_back({.rows = 1, .in = 5120, .outs = {3, 2}, .weight = weight, .dtype = dtype});
      out.push_back(
          {.rows = 4, .in = 400, .outs = {13}, .weight = weight, .dtype = dtype, .bias = true});
      out.push_back({.rows = 8, .in = 2576, .outs = {9}, .weight = weight, .dtype = dtype});
      add_many(weight, dtype, out);
    }
  }
  for (const DType dtype : {DType::f16, DType::bf16}) {
    add_few_plain(dtype, out);
    add_tall(dtype, out);
  }
  add_e4m3(out);
  add_network(out);
  add_wide_x(out);
  // More tiles than a GPU has blocks, some of them shared.
  out.push_back({.rows = 40,
                 .in = 896,
                 .outs = {17152},
                 .weight = DType::q8_0,
                 .dtype = DType::f16,
                 .packed = true});
  // A vocabulary's many outputs.
  for (const DType weight : {DType::bf16, DType::q8_0}) {
    out.push_back({.in = 1024,
                   .outs = {32790},
                   .weight = weight,
                   .packed = is_quantized(weight),
                   .big = true});
  }
  out.push_back({.rows = 0, .in = 8, .outs = {4}});
  out.push_back({.rows = 3, .in = 8, .outs = {0, 4}});
  out.push_back({.rows = 3, .in = 0, .outs = {4}, .bias = true});
  out.push_back(
      {.rows = 64, .in = 576, .outs = {576, 192, 192}, .weight = DType::q4_1, .big = true});
  return out;
}

LinearArgs build(const LinearCase& c, Scene& scene) {
  const bool pack_weights = c.packed && scene.device().id().kind != DeviceKind::cpu;
  // Divided by a scale for the group's largest, these are e4m3 numbers.
  const Values exact{.low = -1.75, .high = 1.75, .step = 0.25};
  const Values wide{.low = -c.largest, .high = c.largest};
  const View x =
      scene.input({{c.rows, c.in}}, c.dtype, c.may_round_to == DType::f8e4m3 ? exact : wide);
  std::vector<LinearPart> parts;
  for (const int64_t out : c.outs) {
    LinearPart part{.weight = scene.input({{out, c.in}}, c.weight_of(parts.size()),
                                          {.one_scale = c.one_scale})};
    if (pack_weights) part.weight = pack(part.weight, scene);
    if (c.bias) part.bias = scene.input({{out}}, c.dtype);
    part.y = scene.output({{c.rows, out}}, c.dtype);
    scene.flops += 2.0 * static_cast<double>(c.rows * out * c.in);
    parts.push_back(part);
  }
  return {.x = x, .parts = scene.hold(std::move(parts)), .may_round_to = c.may_round_to};
}

std::vector<HostArray> formula(const LinearCase& c, const std::vector<HostArray>& inputs) {
  std::vector<HostArray> results;
  const HostArray& x = inputs[0];
  size_t next = 1;
  for (const int64_t out : c.outs) {
    const HostArray& weight = inputs[next++];
    const HostArray* bias = c.bias ? &inputs[next++] : nullptr;
    HostArray y = host_zeros({c.rows, out});
    for (int64_t i = 0; i < y.numel(); ++i) {
      const int64_t row = i / out, column = i % out;
      double sum = bias != nullptr ? (*bias)[column] : 0.0;
      sum += dot(x, row * c.in, weight, column * c.in, c.in);
      y[i] = sum;
    }
    results.push_back(std::move(y));
  }
  return results;
}

std::string name_of(const LinearCase& c) {
  std::string outs;
  for (const int64_t out : c.outs) outs += cat(outs.empty() ? "" : "+", out);
  std::string weights = cat(c.weight_of(0));
  for (size_t i = 1; i < c.weights.size(); ++i) weights += cat('+', c.weights[i]);
  return cat(c.dtype, " (", c.rows, ", ", c.in, ") x ", c.packed ? "packed " : "", weights, " (",
             outs, ')', c.bias ? " + bias" : "",
             c.may_round_to != DType::f32 ? cat(" rounded to ", c.may_round_to) : "",
             c.one_scale ? " of one scale" : "", c.largest != 2 ? cat(" up to ", c.largest) : "");
}

// Matrix instructions take operands of one 16-bit type; f32 is kept unless it may be rounded.
bool may_round(const LinearCase& c, DType weight) {
  if (c.rows <= 8 || weight == c.dtype || weight == DType::f32 || weight == DType::f64)
    return false;
  return c.dtype != DType::f32 || c.may_round_to != DType::f32;
}

Family family_of(const LinearCase& c) {
  Family family = Family::product;
  for (size_t i = 0; i < c.outs.size(); ++i) {
    if (c.may_round_to == DType::f8e4m3) return Family::rounded_product;
    if (is_quantized(c.weight_of(i))) return Family::quant_product;
    if (may_round(c, c.weight_of(i))) family = Family::rounded_product;
  }
  return family;
}

OpTable table() {
  OpTable out("linear");
  for (const LinearCase& c : cases()) {
    out.add<LinearArgs>(
        &KernelTable::linear,
        {.name = name_of(c),
         .family = family_of(c),
         .build = [c](Scene& scene) { return build(c, scene); },
         .formula = [c](const std::vector<HostArray>& inputs) { return formula(c, inputs); },
         .big = c.big});
  }
  return out;
}

const RegisterOp kRegistered(table);

}  // namespace
}  // namespace rbee::harness
