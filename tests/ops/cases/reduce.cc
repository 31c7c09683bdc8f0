// reduce (sum, min, max, argmin, argmax) and argsort.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct ReduceCase {
  ReduceOp op = ReduceOp::sum;
  Layout x;
  uint32_t axes = 1;
  DType dtype = DType::f32;
  Values values = {-50, 50};
  bool big = false;
};

constexpr const char* kNames[] = {"sum", "min", "max", "argmin", "argmax"};

bool finds_index(ReduceOp op) {
  return op == ReduceOp::argmin || op == ReduceOp::argmax;
}

Shape reduced_shape(const ReduceCase& c) {
  Shape shape = c.x.shape;
  for (int i = 0; i < shape.rank(); ++i) {
    if ((c.axes >> i & 1) != 0) shape[i] = 1;
  }
  return shape;
}

std::vector<ReduceCase> reduce_cases() {
  std::vector<ReduceCase> out;
  for (int i = 0; i < 5; ++i) {
    const auto op = static_cast<ReduceOp>(i);
    for (const DType dtype : kPlainTypes) {
      // Sums of 37 fit i16, and u8 from 0 on.
      const Values values = dtype == DType::u8 ? Values{0, 6} : Values{-50, 50};
      out.push_back({op, {{5, 37}, Form::gaps}, 0b10, dtype, values});
      out.push_back({op, {{37, 6}, Form::transposed}, 0b01, dtype, values});
      out.push_back({op, {{5, 37}}, 0b10, dtype, values});
    }
    for (const DType dtype : kFloatTypes) {
      out.push_back({op, {{4, 19}}, 0b10, dtype, {-1, 1, true}});
    }
    out.push_back({op, {{1}}, 1});
    out.push_back({op, {{0, 7}}, 0b10});
    out.push_back({op, {{3, 5, 129}, Form::contiguous, 0b010}, 0b100});
    out.push_back({op, {{4, 1, 6}}, 0b010});
    out.push_back({op, {{1000, 1031}}, 0b10, DType::f32, {}, true});
    out.push_back({op, {{1031, 1000}}, 0b01, DType::f32, {}, true});
    // Few outputs of many elements, along rows and down columns: devices slice them.
    out.push_back({op, {{1, 12288}}, 0b10});
    out.push_back({op, {{384, 32}}, 0b01});
    if (finds_index(op)) continue;
    out.push_back({op, {{2, 3, 5, 7, 11}}, 0b10101});
    out.push_back({op, {{33, 65}}, 0b11, DType::bf16});
    out.push_back({op, {{3, 4}}, 0});
  }
  out.push_back({.x = {{3, 0}}, .axes = 0b10});
  out.push_back({.x = {{1 << 20}}, .axes = 1, .big = true});
  return out;
}

// One step of the reduction: `index` counts the elements seen before.
void take(ReduceOp op, double x, double index, double& best, double& result) {
  if (op == ReduceOp::sum) {
    result += x;
    return;
  }
  const bool smaller = op == ReduceOp::min || op == ReduceOp::argmin;
  const bool better = smaller ? x < best : x > best;
  if (index > 0 && (std::isnan(best) || !(better || std::isnan(x)))) return;
  best = x;
  result = finds_index(op) ? index : x;
}

std::vector<HostArray> reduce_formula(const ReduceCase& c, const HostArray& x) {
  HostArray y = host_zeros(reduced_shape(c));
  std::vector<double> best(y.values.size()), seen(y.values.size());
  for (int64_t i = 0; i < x.numel(); ++i) {
    int64_t rest = i, at = 0, step = 1;
    for (int axis = x.shape.rank() - 1; axis >= 0; --axis) {
      const int64_t index = rest % x.size(axis);
      rest /= x.size(axis);
      at += y.size(axis) == 1 ? 0 : index * step;
      step *= y.size(axis);
    }
    const auto place = static_cast<size_t>(at);
    take(c.op, x[i], seen[place]++, best[place], y[at]);
  }
  return {y};
}

OpTable reduce_table() {
  OpTable out("reduce");
  for (const ReduceCase& c : reduce_cases()) {
    const auto build = [=](Scene& scene) {
      const View x = scene.input(c.x, c.dtype, c.values);
      const DType result = finds_index(c.op) ? DType::u32 : c.dtype;
      scene.flops = static_cast<double>(x.numel());
      return ReduceArgs{
          .op = c.op, .axes = c.axes, .x = x, .y = scene.output({reduced_shape(c)}, result)};
    };
    const bool sums = c.op == ReduceOp::sum && is_float(c.dtype);
    out.add<ReduceArgs>(
        &KernelTable::reduce,
        {.name = cat(kNames[static_cast<int>(c.op)], ' ', c.dtype, ' ', c.x, " axes ", c.axes,
                     c.values.specials ? " specials" : ""),
         .family = sums ? Family::reduction : Family::exact,
         .build = build,
         .formula = [=](const std::vector<HostArray>& in) { return reduce_formula(c, in[0]); },
         .big = c.big});
  }
  return out;
}

struct SortCase {
  Layout x;
  bool descending = false;
  DType dtype = DType::f32;
  Values values = {-20, 20};
  bool big = false;
};

// Pairs of a value and its index: no two are equal in their order.
std::vector<HostArray> sort_pairs(const HostArray& x, bool descending) {
  HostArray y = host_zeros(x.shape);
  const int64_t dim = x.size(-1);
  std::vector<std::pair<double, int64_t>> pairs(static_cast<size_t>(dim));
  for (int64_t row = 0; row < x.numel(); row += dim) {
    for (int64_t i = 0; i < dim; ++i) {
      pairs[static_cast<size_t>(i)] = {descending ? -x[row + i] : x[row + i], i};
    }
    std::sort(pairs.begin(), pairs.end());
    for (int64_t i = 0; i < dim; ++i) {
      y[row + i] = static_cast<double>(pairs[static_cast<size_t>(i)].second);
    }
  }
  return {y};
}

// Counts for each element how many precede it, without a sort.
std::vector<HostArray> rank_each(const HostArray& x, bool descending) {
  HostArray y = host_zeros(x.shape);
  const int64_t dim = x.size(-1);
  const auto before = [&](double a, double b) {
    return descending ? a > b || (std::isnan(a) && !std::isnan(b))
                      : a < b || (std::isnan(b) && !std::isnan(a));
  };
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t row = i - i % dim;
    int64_t place = 0;
    for (int64_t j = row; j < row + dim; ++j) {
      place += before(x[j], x[i]) || (j < i && !before(x[i], x[j]));
    }
    y[row + place] = static_cast<double>(i - row);
  }
  return {y};
}

OpTable argsort_table() {
  std::vector<SortCase> cases;
  for (const bool descending : {false, true}) {
    for (const DType dtype : kPlainTypes) {
      // Few different integers: ties show whether the sort is stable.
      cases.push_back({{{3, 67}, Form::gaps}, descending, dtype});
      cases.push_back({{{5, 29}}, descending, dtype});
    }
    for (const DType dtype : kFloatTypes) {
      cases.push_back({{{2, 33}}, descending, dtype, {-1, 1, true}});
    }
    cases.push_back({{{1}}, descending});
    cases.push_back({{{0, 3}}, descending});
    cases.push_back({{{3, 0}}, descending});
    cases.push_back({{{19, 128}, Form::transposed}, descending});
    cases.push_back({{{4, 1000}, Form::contiguous, 0b01}, descending});
    // Rows that devices merge from sorted pieces.
    cases.push_back({{{1, 4200}}, descending});
    cases.push_back({{{2, 2100}, Form::gaps}, descending, DType::i64});
    cases.push_back({{{1, 40001}}, descending, DType::bf16});
    cases.push_back({{{2, 1048583}}, descending});
    cases.push_back({{{1, 1048583}}, descending, DType::i64});
    cases.push_back({{{64, 1024}}, descending, DType::f32, {}, true});
  }
  OpTable out("argsort");
  for (const SortCase& c : cases) {
    const auto build = [=](Scene& scene) {
      const View x = scene.input(c.x, c.dtype, c.values);
      return ArgsortArgs{
          .x = x, .y = scene.output({c.x.shape}, DType::u32), .descending = c.descending};
    };
    const auto formula = [=](const std::vector<HostArray>& in) {
      constexpr int64_t kLong = 8192;
      return in[0].size(-1) < kLong ? rank_each(in[0], c.descending)
                                    : sort_pairs(in[0], c.descending);
    };
    out.add<ArgsortArgs>(&KernelTable::argsort,
                         {.name = cat(c.descending ? "descending " : "ascending ", c.dtype, ' ',
                                      c.x, c.values.specials ? " specials" : ""),
                          .build = build,
                          .formula = formula,
                          .big = c.big});
  }
  return out;
}

const RegisterOp kReduce(reduce_table);
const RegisterOp kArgsort(argsort_table);

}  // namespace
}  // namespace rbee::harness
