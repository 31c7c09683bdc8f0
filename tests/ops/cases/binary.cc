// binary, compare and where.
#include <algorithm>
#include <cmath>

#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct PairCase {
  int op = 0;
  Layout a;
  Layout b;
  DType dtype = DType::f32;
  Values values = {};
  bool big = false;
};

// Operands of one shape, in all their memory layouts.
std::vector<PairCase> pair_cases(int ops) {
  std::vector<PairCase> out;
  for (int op = 0; op < ops; ++op) {
    for (const DType dtype : kPlainTypes) {
      // Numbers above 1, so that quotients stay small and no unsigned difference wraps.
      out.push_back({op, {{3, 41}, Form::gaps}, {{3, 41}}, dtype, {1, 11}});
      // Whole packs, and a remainder after them.
      out.push_back({op, {{5, 27}}, {{5, 27}}, dtype, {1, 11}});
    }
    out.push_back({op, {{1}}, {{1}}});
    out.push_back({op, {{0, 4}}, {{0, 4}}});
    out.push_back({op, {{6, 35}, Form::transposed}, {{6, 35}, Form::contiguous, 0b01}});
    out.push_back({op, {{4, 3, 29}}, {{4, 3, 29}, Form::contiguous, 0b110}});
    out.push_back({op, {{2, 3, 5, 7, 11}}, {{2, 3, 5, 7, 11}, Form::gaps}, DType::f16});
    if (op == 0) out.push_back({op, {{1000, 1031}}, {{1000, 1031}}, DType::f32, {}, true});
  }
  return out;
}

constexpr const char* kBinaryNames[] = {"add", "sub", "mul", "div", "minimum", "maximum"};

double binary_formula(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::add:
      return a + b;
    case BinaryOp::sub:
      return a - b;
    case BinaryOp::mul:
      return a * b;
    case BinaryOp::div:
      return a / b;
    case BinaryOp::minimum:
      return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
    case BinaryOp::maximum:
      break;
  }
  return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
}

OpTable binary_table() {
  OpTable out("binary");
  std::vector<PairCase> cases = pair_cases(6);
  for (const BinaryOp op : {BinaryOp::minimum, BinaryOp::maximum, BinaryOp::div}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
      cases.push_back({static_cast<int>(op), {{21}}, {{21}, Form::step2}, dtype, {1, 2, true}});
    }
  }
  for (const PairCase& c : cases) {
    const auto op = static_cast<BinaryOp>(c.op);
    const bool whole = is_integer(c.dtype);
    const bool keeps = op == BinaryOp::minimum || op == BinaryOp::maximum;
    const auto build = [=](Scene& scene) {
      Values above = c.values;
      // Products of the smallest integers fit, and unsigned differences stay positive.
      if (whole && op == BinaryOp::sub) above.low = 11, above.high = 20;
      const View a = scene.input(c.a, c.dtype, above);
      const View b = scene.input(c.b, c.dtype, {c.values.low, c.values.high});
      scene.flops = static_cast<double>(a.numel());
      return BinaryArgs{.op = op, .a = a, .b = b, .y = scene.output({c.a.shape}, c.dtype)};
    };
    const auto formula = [=](const std::vector<HostArray>& in) {
      HostArray y = host_zeros(in[0].shape);
      for (int64_t i = 0; i < y.numel(); ++i) {
        const double value = binary_formula(op, in[0][i], in[1][i]);
        y[i] = whole ? std::trunc(value) : value;
      }
      return std::vector{y};
    };
    out.add<BinaryArgs>(&KernelTable::binary,
                        {.name = cat(kBinaryNames[c.op], ' ', c.dtype, ' ', c.a, ' ', c.b,
                                     c.values.specials ? " specials" : ""),
                         .family = whole || keeps ? Family::exact : Family::elementwise,
                         .build = build,
                         .formula = formula,
                         .big = c.big});
  }
  return out;
}

constexpr const char* kCompareNames[] = {"eq", "ne", "lt", "le", "gt", "ge"};

bool compare_formula(CompareOp op, double a, double b) {
  const bool less = a < b, equal = a == b, greater = a > b;
  const bool wanted[] = {equal, !equal, less, less || equal, greater, greater || equal};
  return wanted[static_cast<int>(op)];
}

OpTable compare_table() {
  OpTable out("compare");
  std::vector<PairCase> cases = pair_cases(6);
  for (int op = 0; op < 6; ++op) {
    for (const DType dtype : kFloatTypes) {
      cases.push_back({op, {{21}}, {{21}, Form::step2}, dtype, {-1, 1, true}});
    }
  }
  for (const PairCase& c : cases) {
    const auto op = static_cast<CompareOp>(c.op);
    const auto build = [=](Scene& scene) {
      const View a = scene.input(c.a, c.dtype, c.values);
      const View b = scene.input(c.b, c.dtype, c.values);
      scene.flops = static_cast<double>(a.numel());
      return CompareArgs{.op = op, .a = a, .b = b, .y = scene.output({c.a.shape}, DType::u8)};
    };
    const auto formula = [=](const std::vector<HostArray>& in) {
      HostArray y = host_zeros(in[0].shape);
      for (int64_t i = 0; i < y.numel(); ++i) y[i] = compare_formula(op, in[0][i], in[1][i]);
      return std::vector{y};
    };
    out.add<CompareArgs>(&KernelTable::compare,
                         {.name = cat(kCompareNames[c.op], ' ', c.dtype, ' ', c.a, ' ', c.b,
                                      c.values.specials ? " specials" : ""),
                          .build = build,
                          .formula = formula,
                          .big = c.big});
  }
  return out;
}

struct WhereCase {
  Layout cond;
  Layout a;
  DType dtype = DType::f32;
  DType cond_dtype = DType::u8;
  bool big = false;
};

OpTable where_table() {
  std::vector<WhereCase> cases = {{.cond = {{1}}, .a = {{1}}},
                                  {.cond = {{0}}, .a = {{0}}},
                                  {.cond = {{5, 33}, Form::contiguous, 0b01}, .a = {{5, 33}}},
                                  {.cond = {{1000, 1031}}, .a = {{1000, 1031}}, .big = true}};
  for (const DType dtype : kPlainTypes) {
    cases.push_back({.cond = {{7, 31}}, .a = {{7, 31}, Form::gaps}, .dtype = dtype});
    for (const DType cond : kIntegerTypes) {
      cases.push_back({{{9, 17}, Form::transposed}, {{9, 17}}, dtype, cond});
      cases.push_back({{{5, 27}}, {{5, 27}}, dtype, cond});
    }
  }
  OpTable out("where");
  for (const WhereCase& c : cases) {
    const auto build = [=](Scene& scene) {
      const View cond = scene.input(c.cond, c.cond_dtype, {-2, 2});
      const View a = scene.input(c.a, c.dtype, {0, 100});
      const View b = scene.input({c.a.shape}, c.dtype, {0, 100});
      return WhereArgs{.cond = cond, .a = a, .b = b, .y = scene.output({c.a.shape}, c.dtype)};
    };
    const auto formula = [](const std::vector<HostArray>& in) {
      HostArray y = in[2];
      for (int64_t i = 0; i < y.numel(); ++i) {
        if (in[0][i] != 0) y[i] = in[1][i];
      }
      return std::vector{y};
    };
    out.add<WhereArgs>(&KernelTable::where,
                       {.name = cat(c.cond_dtype, ' ', c.cond, " ? ", c.dtype, ' ', c.a),
                        .build = build,
                        .formula = formula,
                        .big = c.big});
  }
  return out;
}

const RegisterOp kBinary(binary_table);
const RegisterOp kCompare(compare_table);
const RegisterOp kWhere(where_table);

}  // namespace
}  // namespace rbee::harness
