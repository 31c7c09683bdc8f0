// Linear layers followed by the residual and the norm.
#include <cmath>

#include "tests/support/block_types.h"
#include "tests/support/dot.h"
#include "tests/support/op_table.h"
#include "tests/support/packed.h"

namespace rbee::harness {
namespace {

struct NormCase {
  int64_t rows = 1, in = 1, dim = 1;
  DType weight = DType::f32;
  DType dtype = DType::f32;  // of everything else
  bool bias = false;
  bool big = false;
};

std::vector<NormCase> cases() {
  std::vector<NormCase> out;
  const auto add = [&](NormCase c) { out.push_back(c); };
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    // Few rows, whose depth blocks share, and row counts that few or no kernels support.
    for (const int64_t rows : {1, 5, 8, 16, 17, 64, 65}) {
      add({.rows = rows, .in = 1024, .dim = 96, .weight = DType::q8_0, .dtype = dtype});
    }
    add({.rows = 9, .in = 2048, .dim = 240, .weight = DType::q4_k, .dtype = dtype, .bias = true});
    add({.rows = 33, .in = 768, .dim = 120, .weight = DType::q4_0, .dtype = dtype, .bias = true});
    // As many outputs as each block computes alone, and rows that are no multiple of 16 bytes.
    add({.rows = 6, .in = 256, .dim = 904, .weight = DType::q5_k, .dtype = dtype, .bias = true});
    add({.rows = 6, .in = 512, .dim = 21, .weight = DType::q8_0, .dtype = dtype});
    // Several packs of a row per thread.
    add({.rows = 12, .in = 1024, .dim = 4104, .weight = DType::q4_0, .dtype = dtype, .bias = true});
    add({.rows = 6, .in = 4096, .dim = 8192, .weight = DType::q4_k, .dtype = dtype, .big = true});
    // Weights of x's type.
    for (const int64_t rows : {9, 16, 40}) {
      add({.rows = rows, .in = 1032, .dim = 104, .weight = dtype, .dtype = dtype, .bias = true});
    }
  }
  for (const DType weight :
       test::block_types_but({DType::q4_0, DType::q8_0, DType::q4_k, DType::q5_k})) {
    add({.rows = 7, .in = 1024, .dim = 64, .weight = weight, .dtype = DType::bf16});
  }
  add({.rows = 8,
       .in = 14336,
       .dim = 4096,
       .weight = DType::q8_0,
       .dtype = DType::bf16,
       .big = true});
  return out;
}

// Inputs in this order: x, weight, bias, residual, norm weight.
LinearNormArgs build(const NormCase& c, Scene& scene) {
  LinearNormArgs args{};
  args.x = scene.input({{c.rows, c.in}}, c.dtype);
  args.weight = scene.input({{c.dim, c.in}}, c.weight, {-0.1, 0.1});
  if (scene.device().id().kind != DeviceKind::cpu) args.weight = pack(args.weight, scene);
  if (c.bias) args.bias = scene.input({{c.dim}}, c.dtype);
  args.residual = scene.input({{c.rows, c.dim}}, c.dtype);
  args.norm_weight = scene.input({{c.dim}}, c.dtype);
  args.eps = 1e-5f;
  args.sum = scene.output({{c.rows, c.dim}}, c.dtype);
  args.y = scene.output({{c.rows, c.dim}}, c.dtype);
  scene.flops = 2.0 * static_cast<double>(c.rows * c.dim * c.in);
  return args;
}

std::vector<HostArray> formula(const NormCase& c, const std::vector<HostArray>& inputs) {
  const HostArray& residual = inputs[c.bias ? 3 : 2];
  const HostArray& norm_weight = inputs[c.bias ? 4 : 3];
  HostArray sum = residual, y = residual;
  for (int64_t row = 0; row < c.rows; ++row) {
    double squares = 0;
    for (int64_t i = 0; i < c.dim; ++i) {
      double product = c.bias ? inputs[2][i] : 0.0;
      product += dot(inputs[0], row * c.in, inputs[1], i * c.in, c.in);
      const double total = residual[row * c.dim + i] + product;
      sum[row * c.dim + i] = total;
      squares += total * total;
    }
    const double scale = 1 / std::sqrt(squares / static_cast<double>(c.dim) + 1e-5f);
    for (int64_t i = 0; i < c.dim; ++i) {
      y[row * c.dim + i] = sum[row * c.dim + i] * scale * norm_weight[i];
    }
  }
  return {sum, y};
}

std::string name_of(const NormCase& c) {
  return cat(c.dtype, " (", c.rows, ", ", c.in, ") x ", c.weight, " (", c.dim, ')',
             c.bias ? " bias" : "");
}

// In 16 bits the product and the sum are rounded in between.
Family family_of(const NormCase& c) {
  if (is_quantized(c.weight)) return Family::quant_product;
  return c.dtype == DType::f32 ? Family::product : Family::rounded_product;
}

OpTable table() {
  OpTable out("linear_norm");
  for (const NormCase& c : cases()) {
    out.add<LinearNormArgs>(
        &KernelTable::linear_norm,
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
