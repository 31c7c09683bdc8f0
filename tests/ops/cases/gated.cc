// y = act(gate) * up.
#include <cmath>

#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct GatedCase {
  GateOp op = GateOp::silu;
  Layout gate;
  DType dtype = DType::f32;
  Values values = {};
  bool big = false;
};

const char* name_of(GateOp op) {
  static constexpr const char* kNames[] = {"silu", "gelu", "gelu_erf", "relu", "sigmoid"};
  return kNames[static_cast<size_t>(op)];
}

std::vector<GatedCase> cases() {
  std::vector<GatedCase> out;
  for (const GateOp op :
       {GateOp::silu, GateOp::gelu, GateOp::gelu_erf, GateOp::relu, GateOp::sigmoid}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
      out.push_back({.op = op, .gate = {{3, 37}}, .dtype = dtype});
      out.push_back({.op = op, .gate = {{3, 37}}, .dtype = dtype});
      out.back().values.undefined = {3, 36};
    }
    out.push_back({.op = op, .gate = {{1, 1}}});
    out.push_back({.op = op, .gate = {{5, 1031}, Form::gaps}, .values = {-60, 60}});
    out.push_back({.op = op, .gate = {{2, 5000}}, .values = {-100, 100}});
    out.push_back({.op = op, .gate = {{0, 16}}});
    out.push_back({.op = op, .gate = {{19, 33}, Form::transposed}});
  }
  out.push_back({.gate = {{512, 1536}}, .big = true});
  out.push_back({.op = GateOp::gelu, .gate = {{512, 2048}}, .big = true});
  return out;
}

double activation(GateOp op, double x) {
  switch (op) {
    case GateOp::silu:
      return x / (1 + std::exp(-x));
    case GateOp::gelu:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case GateOp::gelu_erf:
      return x * std::erfc(-x / std::sqrt(2.0)) / 2;
    case GateOp::relu:
      return x < 0 ? 0 : x;
    case GateOp::sigmoid:
      break;
  }
  return 1 / (1 + std::exp(-x));
}

OpTable table() {
  OpTable out("gated");
  for (const GatedCase& c : cases()) {
    out.add<GatedArgs>(&KernelTable::gated,
                       {.name = cat(name_of(c.op), ' ', c.dtype, ' ', c.gate,
                                    c.values.undefined.empty() ? "" : " NaN"),
                        .family = Family::function,
                        .build =
                            [c](Scene& scene) {
                              const View gate = scene.input(c.gate, c.dtype, c.values);
                              const View up = scene.input({c.gate.shape}, c.dtype);
                              scene.flops = 20.0 * static_cast<double>(gate.numel());
                              return GatedArgs{c.op, gate, up,
                                               scene.output({c.gate.shape}, c.dtype)};
                            },
                        .formula =
                            [c](const std::vector<HostArray>& in) {
                              HostArray y = host_zeros(in[0].shape);
                              for (int64_t i = 0; i < y.numel(); ++i) {
                                y[i] = activation(c.op, in[0][i]) * in[1][i];
                              }
                              return std::vector{y};
                            },
                        .big = c.big});
  }
  return out;
}

const RegisterOp kRegistered(table);

}  // namespace
}  // namespace rbee::harness
