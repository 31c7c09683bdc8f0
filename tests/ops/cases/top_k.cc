#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();

struct TopKCase {
  Layout x;
  int64_t k = 1;
  DType dtype = DType::f32;
  Values values = {-20, 20};
  bool sums = true;
  bool scaled = false;
  bool big = false;
};

std::vector<TopKCase> cases() {
  std::vector<TopKCase> out;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    out.push_back({.x = {{3, 67}}, .k = 5, .dtype = dtype});
    out.push_back({.x = {{3, 67}, Form::gaps}, .k = 67, .dtype = dtype, .scaled = true});
    out.push_back({.x = {{40, 6}, Form::transposed}, .k = 3, .dtype = dtype, .sums = false});
    out.push_back({.x = {{2, 33}}, .k = 33, .dtype = dtype, .values = {-1, 1, true}});
    // Only the largest.
    out.push_back({.x = {{3, 67}, Form::gaps}, .dtype = dtype, .sums = false});
    out.push_back(
        {.x = {{2, 9001}, Form::step2}, .dtype = dtype, .values = {-1, 1, true}, .sums = false});
    // Rows of several pieces, and lists too long for one merge.
    out.push_back({.x = {{2, 5000}, Form::gaps}, .k = 40, .dtype = dtype, .scaled = true});
    out.push_back({.x = {{1, 9001}, Form::step2}, .k = 600, .dtype = dtype});
  }
  // Sums of several pieces and a rest, with what is no number in between.
  out.push_back({.x = {{2, 5003}}, .k = 40, .values = {-1, 1, true}});
  out.push_back({.x = {{2, 5003}}, .k = 40, .values = {-90, 5}, .scaled = true});
  for (const int64_t k : {1, 2, 64, 255, 1024}) {
    out.push_back({.x = {{3, 2047}}, .k = std::min<int64_t>(k, 2047)});
    out.push_back({.x = {{1, 49152}}, .k = k, .scaled = true});
    // Few different numbers: ties.
    out.push_back({.x = {{2, 20000}}, .k = k, .dtype = DType::bf16, .sums = false});
  }
  for (const int64_t k : {1, 40, 1024}) {
    out.push_back({.x = {{2, 1048583}}, .k = k, .dtype = DType::f16, .sums = k == 40});
  }
  for (const int64_t n : {1, 4096, 4097}) out.push_back({.x = {{3, n}}, .sums = false});
  out.push_back({.x = {{2, 9000}, Form::contiguous, 0b10}, .sums = false});  // nothing but ties
  for (const int64_t rows : {1, 32}) {
    out.push_back({.x = {{rows, 128256}}, .sums = false, .big = true});
  }
  out.push_back({.x = {{1, 1}}, .k = 1});
  out.push_back({.x = {{0, 7}}, .k = 2});
  out.push_back({.x = {{2, 2048}}, .k = 1024});
  out.push_back({.x = {{1, 2049}}, .k = 1024, .values = {-1, 1, true}});
  out.push_back({.x = {{4, 3000}, Form::contiguous, 0b10}, .k = 300});  // nothing but ties
  for (const int64_t k : {1, 64, 256, 1024}) {
    for (const int64_t n : {128256, 262144}) {
      out.push_back({.x = {{1, n}}, .k = k, .scaled = true, .big = true});
    }
  }
  out.push_back({.x = {{32, 128256}}, .k = 64, .big = true});
  return out;
}

std::vector<HostArray> top_k_formula(const TopKCase& c, const std::vector<HostArray>& in) {
  const HostArray& x = in[0];
  const int64_t rows = x.size(0), n = x.size(1);
  HostArray values = host_zeros({rows, c.k}), ids = host_zeros({rows, c.k});
  HostArray sums = host_zeros({rows});
  for (int64_t row = 0; row < rows; ++row) {
    // Pairs in ascending order are values in descending order, then places in ascending order.
    std::vector<std::pair<double, int64_t>> pairs;
    for (int64_t i = 0; i < n; ++i) {
      const double value = x[row * n + i];
      pairs.emplace_back(std::isnan(value) ? -kLowest : 0 - value, i);
    }
    std::sort(pairs.begin(), pairs.end());
    for (int64_t i = 0; i < c.k; ++i) {
      values[row * c.k + i] = 0 - pairs[static_cast<size_t>(i)].first;
      ids[row * c.k + i] = static_cast<double>(pairs[static_cast<size_t>(i)].second);
    }
    const double scale = c.scaled ? in[1][row] : 1;
    for (const auto& [negative, i] : pairs) {
      if (negative != -kLowest) sums[row] += std::exp(scale * (pairs[0].first - negative));
    }
  }
  std::vector<HostArray> out{values, ids};
  if (c.sums) out.push_back(sums);
  return out;
}

OpTable top_k_table() {
  OpTable out("top_k");
  for (const TopKCase& c : cases()) {
    const auto build = [=](Scene& scene) {
      const int64_t rows = c.x.shape[0];
      TopKArgs args;
      args.x = scene.input(c.x, c.dtype, c.values);
      if (c.scaled) args.scale = scene.input({{rows}}, DType::f32, {0.2, 2});
      args.values = scene.output({{rows, c.k}}, DType::f32);
      args.ids = scene.output({{rows, c.k}}, DType::i32);
      if (c.sums) args.sum = scene.output({{rows}}, DType::f32);
      scene.flops = static_cast<double>(numel(c.x.shape));
      return args;
    };
    out.add<TopKArgs>(
        &KernelTable::top_k,
        {.name = cat(c.dtype, ' ', c.x, " k ", c.k, c.scaled ? " scaled" : "",
                     c.sums ? "" : " no sum", c.values.specials ? " specials" : ""),
         .family = Family::reduction,
         .build = build,
         .formula = [=](const std::vector<HostArray>& in) { return top_k_formula(c, in); },
         .big = c.big});
  }
  return out;
}

const RegisterOp kTopK(top_k_table);

}  // namespace
}  // namespace rbee::harness
