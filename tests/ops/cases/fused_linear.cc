// Linear layers with the norm before them and the gate or the residual after them.
#include <cmath>

#include "tests/support/block_types.h"
#include "tests/support/dot.h"
#include "tests/support/op_table.h"
#include "tests/support/packed.h"

namespace rbee::harness {
namespace {

struct FusedCase {
  int64_t rows = 1, in = 1;
  std::vector<int64_t> outs = {1};  // one part each; of a gate, both are as large
  DType weight = DType::f32;
  DType dtype = DType::f32;  // of everything else
  bool norm = false, bias = false, residual = false;
  std::optional<GateOp> gate = std::nullopt;
  bool big = false;
};

void add_shapes(DType weight, DType dtype, std::vector<FusedCase>& out) {
  const auto add = [&](FusedCase c) {
    c.weight = weight;
    c.dtype = dtype;
    out.push_back(std::move(c));
  };
  // Rows of one trip of a wave, of whole trips, and with an overlapping last trip.
  add({.in = 2048, .outs = {35, 12, 17}, .norm = true});
  add({.in = 4096, .outs = {15}, .bias = true, .residual = true});
  add({.in = 2560, .outs = {33}, .norm = true, .gate = GateOp::silu});
  add({.in = 4864, .outs = {12, 19}, .norm = true, .bias = true});
  add({.rows = 3, .in = 512, .outs = {16}, .norm = true, .residual = true});
  // Parts in whole tiles of 32, except the last.
  add({.in = 2048, .outs = {64, 32, 40}, .norm = true, .bias = true});
}

std::vector<FusedCase> cases() {
  std::vector<FusedCase> out;
  for (const DType weight : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      add_shapes(weight, dtype, out);
    }
  }
  for (const DType weight : test::usual_block_types()) {
    add_shapes(weight, weight == DType::q4_k ? DType::bf16 : DType::f32, out);
  }
  for (const DType weight : test::few_bit_block_types()) {
    add_shapes(weight, weight == DType::iq2_s ? DType::bf16 : DType::f32, out);
  }
  for (const GateOp gate :
       {GateOp::silu, GateOp::gelu, GateOp::gelu_erf, GateOp::relu, GateOp::sigmoid}) {
    out.push_back({.in = 1024, .outs = {9}, .norm = true, .bias = true, .gate = gate});
    out.push_back({.rows = 2, .in = 24, .outs = {5}, .gate = gate});
  }
  // More rows than a mat-vec supports.
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    out.push_back({.rows = 40,
                   .in = 64,
                   .outs = {72},
                   .weight = dtype,
                   .dtype = dtype,
                   .bias = true,
                   .residual = true});
    out.push_back(
        {.rows = 9, .in = 24, .outs = {20}, .weight = dtype, .dtype = dtype, .residual = true});
  }
  // Enough groups to keep several waves of a device busy, and rows that waves share.
  out.push_back({.in = 1024, .outs = {9001}, .weight = DType::f16, .dtype = DType::f16});
  out.push_back({.in = 11008, .outs = {130}, .weight = DType::q8_0, .residual = true});
  for (const DType weight : {DType::f16, DType::bf16, DType::f8_g128}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      out.push_back({.in = 4352, .outs = {96}, .weight = weight, .dtype = dtype, .residual = true});
      out.push_back(
          {.in = 2048, .outs = {70}, .weight = weight, .dtype = dtype, .gate = GateOp::silu});
    }
  }
  // Rows as long as in the largest models.
  for (const DType weight : {DType::q4_k, DType::q6_k, DType::q8_0, DType::bf16, DType::f8_g128}) {
    out.push_back(
        {.in = 28672, .outs = {40}, .weight = weight, .dtype = DType::bf16, .residual = true});
  }
  out.push_back({.in = 28672, .outs = {40}, .weight = DType::bf16, .norm = true});
  out.push_back({.in = 53248, .outs = {40}, .weight = DType::bf16, .dtype = DType::bf16});
  // Several times more tiles than blocks.
  out.push_back({.in = 1024,
                 .outs = {9001},
                 .weight = DType::bf16,
                 .dtype = DType::bf16,
                 .norm = true,
                 .residual = true});
  out.push_back({.in = 1024,
                 .outs = {13001},
                 .weight = DType::q8_0,
                 .dtype = DType::f16,
                 .bias = true,
                 .residual = true});
  out.push_back({.in = 1024,
                 .outs = {4500},
                 .weight = DType::q8_0,
                 .dtype = DType::bf16,
                 .norm = true,
                 .gate = GateOp::gelu});
  out.push_back({.in = 4096,
                 .outs = {96},
                 .weight = DType::q4_k,
                 .dtype = DType::f16,
                 .norm = true,
                 .residual = true});
  out.push_back({.rows = 0, .in = 8, .outs = {4}, .norm = true});
  out.push_back({.in = 8, .outs = {0}, .norm = true});
  out.push_back({.in = 4096,
                 .outs = {14336},
                 .weight = DType::bf16,
                 .dtype = DType::bf16,
                 .norm = true,
                 .gate = GateOp::silu,
                 .big = true});
  return out;
}

// Inputs in this order: x, norm weight, for each part weight and bias, residual.
FusedLinearArgs build(const FusedCase& c, Scene& scene) {
  FusedLinearArgs args{};
  args.x = scene.input({{c.rows, c.in}}, c.dtype);
  if (c.norm) args.norm_weight = scene.input({{c.in}}, c.dtype);
  args.eps = 1e-5f;
  args.gated = c.gate.has_value();
  args.gate = c.gate.value_or(GateOp::silu);
  const bool pack_weights = scene.device().id().kind != DeviceKind::cpu;
  std::vector<int64_t> outs = c.outs;
  if (c.gate) outs.push_back(outs[0]);
  std::vector<LinearPart> parts;
  for (const int64_t out : outs) {
    LinearPart part{.weight = scene.input({{out, c.in}}, c.weight, {-0.1, 0.1})};
    if (pack_weights) part.weight = pack(part.weight, scene);
    if (c.bias) part.bias = scene.input({{out}}, c.dtype);
    scene.flops += 2.0 * static_cast<double>(c.rows * out * c.in);
    parts.push_back(part);
  }
  if (c.residual) args.residual = scene.input({{c.rows, outs[0]}}, c.dtype);
  for (size_t i = 0; i < c.outs.size(); ++i) {
    parts[i].y = scene.output({{c.rows, c.outs[i]}}, c.dtype);
  }
  args.parts = scene.hold(std::move(parts));
  return args;
}

double activate(GateOp op, double x) {
  switch (op) {
    case GateOp::silu:
      return x / (1 + std::exp(-x));
    case GateOp::gelu:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case GateOp::gelu_erf:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case GateOp::relu:
      return x < 0 ? 0 : x;
    case GateOp::sigmoid:
      return 1 / (1 + std::exp(-x));
  }
  return 0;
}

HostArray normed(const FusedCase& c, const HostArray& x, const HostArray& weight) {
  HostArray y = x;
  for (int64_t row = 0; row < c.rows; ++row) {
    double squares = 0;
    for (int64_t i = 0; i < c.in; ++i) squares += x[row * c.in + i] * x[row * c.in + i];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(c.in) + 1e-5f);
    for (int64_t i = 0; i < c.in; ++i) y[row * c.in + i] = x[row * c.in + i] * scale * weight[i];
  }
  return y;
}

HostArray product(const FusedCase& c, const HostArray& x, const HostArray& weight,
                  const HostArray* bias) {
  const int64_t outs = weight.size(0);
  HostArray y = host_zeros({c.rows, outs});
  for (int64_t i = 0; i < y.numel(); ++i) {
    const int64_t row = i / outs, column = i % outs;
    double sum = bias != nullptr ? (*bias)[column] : 0.0;
    sum += dot(x, row * c.in, weight, column * c.in, c.in);
    y[i] = sum;
  }
  return y;
}

std::vector<HostArray> formula(const FusedCase& c, const std::vector<HostArray>& inputs) {
  size_t next = 1;
  const HostArray x = c.norm ? normed(c, inputs[0], inputs[next++]) : inputs[0];
  std::vector<HostArray> results;
  for (size_t i = 0; i < c.outs.size() + (c.gate ? 1 : 0); ++i) {
    const HostArray& weight = inputs[next++];
    results.push_back(product(c, x, weight, c.bias ? &inputs[next++] : nullptr));
  }
  HostArray& y = results[0];
  for (int64_t i = 0; i < y.numel() && c.gate; ++i) y[i] = activate(*c.gate, y[i]) * results[1][i];
  for (int64_t i = 0; i < y.numel() && c.residual; ++i) y[i] += inputs[next][i];
  if (c.gate) results.pop_back();
  return results;
}

std::string name_of(const FusedCase& c) {
  std::string outs;
  for (const int64_t out : c.outs) outs += cat(outs.empty() ? "" : "+", out);
  constexpr const char* kGates[] = {"silu", "gelu", "gelu_erf", "relu", "sigmoid"};
  std::string around = c.norm ? " norm" : "";
  if (c.gate) around += cat(' ', kGates[static_cast<size_t>(*c.gate)]);
  if (c.bias) around += " bias";
  if (c.residual) around += " residual";
  return cat(c.dtype, " (", c.rows, ", ", c.in, ") x ", c.weight, " (", outs, ')', around);
}

// In 16 bits the norm and the gate's operands may be rounded on the way.
Family family_of(const FusedCase& c) {
  if (is_quantized(c.weight)) return c.gate ? Family::quant_gate : Family::quant_product;
  return c.dtype == DType::f32 ? Family::product : Family::rounded_product;
}

OpTable table() {
  OpTable out("fused_linear");
  for (const FusedCase& c : cases()) {
    out.add<FusedLinearArgs>(
        &KernelTable::fused_linear,
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
