// Rotary position embedding.
#include <cmath>

#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct RopeCase {
  Layout x;  // (batch, heads, time, head_dim)
  int64_t pairs = 1;
  RopeLayout layout = RopeLayout::half;
  bool positions = true;
  DType dtype = DType::f32;
  bool big = false;
};

constexpr int64_t kPositions = 40;

std::vector<RopeCase> cases() {
  std::vector<RopeCase> out;
  for (const RopeLayout layout : {RopeLayout::half, RopeLayout::interleaved}) {
    for (const DType dtype : kFloatTypes) {
      out.push_back({.x = {{1, 3, 5, 64}}, .pairs = 32, .layout = layout, .dtype = dtype});
      if (dtype == DType::f32) continue;
      out.push_back({.x = {{2, 3, 5, 48}, Form::transposed},
                     .pairs = 16,
                     .layout = layout,
                     .positions = false,
                     .dtype = dtype});
      out.push_back(
          {.x = {{1, 2, 11, 33}, Form::gaps}, .pairs = 5, .layout = layout, .dtype = dtype});
    }
    for (const bool positions : {true, false}) {
      out.push_back({.x = {{2, 2, 7, 26}}, .pairs = 13, .layout = layout, .positions = positions});
      out.push_back({.x = {{2, 1, 3, 80}}, .pairs = 20, .layout = layout, .positions = positions});
      out.push_back({.x = {{1, 2, 11, 33}, Form::gaps},
                     .pairs = 5,
                     .layout = layout,
                     .positions = positions});
    }
    out.push_back({.x = {{1, 4, 6, 16}, Form::transposed}, .pairs = 8, .layout = layout});
    out.push_back({.x = {{1, 4, 0, 16}}, .pairs = 8, .layout = layout});
    out.push_back({.x = {{1, 1, 1, 2}}, .pairs = 1, .layout = layout});
    out.push_back({.x = {{1, 9, 512, 64}}, .pairs = 32, .layout = layout, .big = true});
    // Heads as in models: rotated whole, or in their first half or quarter.
    for (const int64_t dim : {32, 80, 96, 128, 256}) {
      for (const int64_t share : {1, 2, 4}) {
        for (const DType dtype : kFloatTypes) {
          out.push_back({.x = {{1, 2, 3, dim}},
                         .pairs = dim / 2 / share,
                         .layout = layout,
                         .positions = share != 2,
                         .dtype = dtype});
        }
      }
    }
  }
  return out;
}

// Token t of sequence b has position 7 t + 3 b, modulo the table.
std::vector<int32_t> positions_of(const RopeCase& c) {
  std::vector<int32_t> out;
  for (int64_t b = 0; b < c.x.shape[0]; ++b) {
    for (int64_t t = 0; t < c.x.shape[2]; ++t) {
      out.push_back(static_cast<int32_t>((7 * t + 3 * b) % kPositions));
    }
  }
  return out;
}

std::vector<HostArray> formula(const RopeCase& c, const std::vector<HostArray>& in) {
  const HostArray &x = in[0], &cos = in[1], &sin = in[2];
  const std::vector<int32_t> positions = positions_of(c);
  HostArray y = x;
  const int64_t heads = x.size(1), times = x.size(2), dim = x.size(3);
  for (int64_t row = 0; row < x.size(0) * heads * times; ++row) {
    const int64_t time = row % times;
    const int64_t batch = row / times / heads;
    const int64_t at = c.positions ? positions[static_cast<size_t>(batch * times + time)] : time;
    for (int64_t i = 0; i < c.pairs; ++i) {
      const bool half = c.layout == RopeLayout::half;
      const int64_t a = row * dim + (half ? i : 2 * i);
      const int64_t b = row * dim + (half ? i + c.pairs : 2 * i + 1);
      const double cosine = cos[at * c.pairs + i], sine = sin[at * c.pairs + i];
      y[a] = x[a] * cosine - x[b] * sine;
      y[b] = x[a] * sine + x[b] * cosine;
    }
  }
  return {y};
}

OpTable table() {
  OpTable out("rope");
  for (const RopeCase& c : cases()) {
    out.add<RopeArgs>(
        &KernelTable::rope,
        {.name = cat(c.layout == RopeLayout::half ? "half " : "interleaved ", c.dtype, ' ', c.x,
                     " pairs ", c.pairs, c.positions ? "" : " by time"),
         // A difference of two products: the error scales with the operands.
         .family = Family::product,
         .build =
             [c](Scene& scene) {
               const int64_t rows = std::max(kPositions, c.x.shape[2]);
               RopeArgs args{.x = scene.input(c.x, c.dtype),
                             .cos = scene.input({{rows, c.pairs}}, DType::f32, {-1, 1}),
                             .sin = scene.input({{rows, c.pairs}}, DType::f32, {-1, 1}),
                             .positions = {},
                             .y = {},
                             .layout = c.layout};
               if (c.positions) {
                 args.positions =
                     scene.input_of<int32_t>({c.x.shape[0], c.x.shape[2]}, positions_of(c));
               }
               args.y = scene.output({c.x.shape}, c.dtype);
               scene.flops = 3.0 * static_cast<double>(args.x.numel());
               return args;
             },
         .formula = [c](const std::vector<HostArray>& in) { return formula(c, in); },
         .big = c.big});
  }
  return out;
}

const RegisterOp kRegistered(table);

}  // namespace
}  // namespace rbee::harness
