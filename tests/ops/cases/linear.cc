// y = x * weight^T + bias over plain weights of every type. tests/linear holds packed weights.
#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct LinearCase {
  int64_t rows = 1, in = 1;
  std::vector<int64_t> outs = {1};  // one part each
  DType weight = DType::f32;
  DType dtype = DType::f32;  // of x, bias and y
  bool bias = false;
  bool big = false;
};

std::vector<LinearCase> cases() {
  std::vector<LinearCase> out;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const DType weight : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::f8e4m3}) {
      out.push_back({.rows = 3, .in = 37, .outs = {17}, .weight = weight, .dtype = dtype});
    }
    out.push_back({.rows = 5, .in = 64, .outs = {9, 1, 33}, .dtype = dtype, .bias = true});
  }
  for (const DType weight : {DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q8_0,
                             DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k,
                             DType::q8_k, DType::iq4_nl, DType::iq4_xs, DType::mxfp4}) {
    const int64_t block = info(weight).block_size;
    out.push_back({.rows = 1, .in = 3 * block, .outs = {19}, .weight = weight});
    out.push_back({.rows = 6, .in = block, .outs = {4, 7}, .weight = weight, .bias = true});
  }
  out.push_back({.rows = 0, .in = 8, .outs = {4}});
  out.push_back({.rows = 3, .in = 8, .outs = {0, 4}});
  out.push_back({.rows = 3, .in = 0, .outs = {4}, .bias = true});
  out.push_back(
      {.rows = 64, .in = 576, .outs = {576, 192, 192}, .weight = DType::q4_1, .big = true});
  return out;
}

LinearArgs build(const LinearCase& c, Scene& scene) {
  const View x = scene.input({{c.rows, c.in}}, c.dtype);
  std::vector<LinearPart> parts;
  for (const int64_t out : c.outs) {
    LinearPart part{.weight = scene.input({{out, c.in}}, c.weight)};
    if (c.bias) part.bias = scene.input({{out}}, c.dtype);
    part.y = scene.output({{c.rows, out}}, c.dtype);
    scene.flops += 2.0 * static_cast<double>(c.rows * out * c.in);
    parts.push_back(part);
  }
  return {.x = x, .parts = scene.hold(std::move(parts))};
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
      for (int64_t k = 0; k < c.in; ++k) sum += x[row * c.in + k] * weight[column * c.in + k];
      y[i] = sum;
    }
    results.push_back(std::move(y));
  }
  return results;
}

std::string name_of(const LinearCase& c) {
  std::string outs;
  for (const int64_t out : c.outs) outs += cat(outs.empty() ? "" : "+", out);
  return cat(c.dtype, " (", c.rows, ", ", c.in, ") x ", c.weight, " (", outs, ')',
             c.bias ? " + bias" : "");
}

OpTable table() {
  OpTable out("linear");
  for (const LinearCase& c : cases()) {
    out.add<LinearArgs>(
        &KernelTable::linear,
        {.name = name_of(c),
         .family = is_quantized(c.weight) ? Family::quant_product : Family::product,
         .build = [c](Scene& scene) { return build(c, scene); },
         .formula = [c](const std::vector<HostArray>& inputs) { return formula(c, inputs); },
         .big = c.big});
  }
  return out;
}

const RegisterOp kRegistered(table);

}  // namespace
}  // namespace rbee::harness
