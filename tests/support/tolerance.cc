#include "tests/support/tolerance.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

namespace rbee::harness {
namespace {

// The difference that two right results may have; kRoom times that is allowed. tests/ops/README.md
// derives the rows.
struct Row {
  Family family;
  std::optional<DType> dtype;        // of the output; empty: every type
  std::optional<DeviceKind> device;  // empty: every kind
  double units;                      // of relative error, see resolution()
  double of_largest;                 // as in Tolerance
};
constexpr double kRoom = 2;

// The last matching row counts; a looser row after a family's first one gives its reason.
constexpr Row kRows[] = {
    {Family::exact, {}, {}, 0, 0},
    // Both results are rounded, each by at most half a unit; a sum of two terms, fused or not, has
    // the error of its terms.
    {Family::elementwise, {}, {}, 1, 1e-7},
    {Family::elementwise, DType::f64, {}, 1, 2e-16},
    // A number near a boundary may be rounded to either side, a step of 1/127 of the largest.
    {Family::elementwise, DType::q8_0, {}, 0, 0.0083},
    {Family::function, {}, {}, 1, 1e-7},
    // f32 formulas are exact to about an ulp of their terms, and two of them are compared.
    {Family::function, DType::f32, {}, 2, 1e-7},
    {Family::function, DType::f64, {}, 4, 5e-16},
    // The order of a sum is free; cancellation makes the error relative to the terms. Values
    // hundreds of times as far from zero as from their mean lose as much of their differences to
    // it.
    {Family::reduction, {}, {}, 1, 1e-5},
    {Family::reduction, DType::f64, {}, 2, 5e-14},
    {Family::norm, {}, {}, 1, 5e-7},
    {Family::norm, DType::f32, {}, 2, 5e-7},
    {Family::norm, DType::f64, {}, 4, 5e-15},
    {Family::product, {}, {}, 1, 5e-6},
    {Family::product, DType::f64, {}, 4, 5e-15},
    {Family::product, DType::q8_0, {}, 0, 0.0083},  // as above
    // bf16 keeps 8 bits; over a dot product the errors of its roundings average out.
    {Family::rounded_product, {}, {}, 1, 4e-3},
    // One step of an 8-bit block is 1/127 of its largest activation; over a dot product the errors
    // average out to below a fiftieth of the largest result.
    {Family::quant_product, {}, {}, 1, 0.02},
    // The relative errors of both factors add up.
    {Family::quant_gate, {}, {}, 1, 0.04},
    {Family::attention, {}, {}, 1, 5e-6},
    // Probabilities may be rounded to the operands' type before the second product.
    {Family::attention, DType::f16, {}, 1, 1e-3},
    {Family::attention, DType::bf16, {}, 1, 5e-3},
    // Rounded queries make scores inexact, and each weight by as much. The result is f32.
    {Family::rounded_attention, DType::f16, {}, 0, 1.25e-3},
    {Family::rounded_attention, DType::bf16, {}, 0, 1e-2},
};

// For many results together, because a single one may hide a fault: the root mean square of the
// errors relative to that of the allowed ones, and by how much all of them may be too large or too
// small.
constexpr double kMany = 64;
constexpr double kMostMeanSquare = 0.4;
constexpr double kMostScale = 0.005;
// Results of one row share its activations' rounding errors, if weights are not around zero.
constexpr double kMostOfRow = 0.015;

// The distance from 1 to the next number, and the smallest number above 0.
struct Resolution {
  double unit = 0;
  double smallest = 0;
};

Resolution resolution(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return {0x1p-10, 0x1p-24};
    case DType::bf16:
      return {0x1p-7, 0x1p-133};
    case DType::f32:
      return {0x1p-23, 0x1p-149};
    case DType::f64:
      return {0x1p-52, 0x1p-1074};
    case DType::f8e4m3:
      return {0x1p-3, 0x1p-9};
    default:
      return {};
  }
}

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

// Sums over the finite results, relative to the largest.
struct Sums {
  // Of numbers to the second and the fourth power.
  struct Powers {
    double second = 0, fourth = 0;

    void add(double number) {
      second += number * number;
      fourth += number * number * number * number;
    }
    // How many equal numbers would have these sums.
    double effective_count() const { return fourth > 0 ? second * second / fourth : 0; }
  };
  Powers errors, allowed, wanted;
  double along = 0;  // of errors times wanted values

  void add(double error, double want, double most) {
    if (!std::isfinite(error) || !std::isfinite(want)) return;
    errors.add(error);
    allowed.add(most);
    wanted.add(want);
    along += error * want;
  }
};

void exceed(Comparison& out, double excess, const std::string& failure) {
  out.worst_excess = std::max(out.worst_excess, excess);
  if (excess <= 1 || !out.ok) return;
  out.ok = false;
  out.first_failure = failure;
}

void compare_one(Comparison& out, int64_t i, double got, double want, double allowed) {
  if (same_bits(got, want)) return;
  double error = std::fabs(got - want);
  if (std::isnan(error)) error = INFINITY;  // NaN or infinity on one side, or opposite infinities
  out.worst_absolute = std::max(out.worst_absolute, error);
  if (want != 0) out.worst_relative = std::max(out.worst_relative, error / std::fabs(want));
  const double excess = allowed > 0 ? error / allowed : INFINITY;
  exceed(out, excess,
         cat("element ", i, ": got ", got, ", want ", want, " (allowed error ", allowed, ')'));
}

// `rows` of results, with independent errors.
void compare_sums(Comparison& out, const Sums& sums, const Tolerance& each, int64_t rows) {
  if (sums.allowed.effective_count() >= kMany) {
    const double part = std::sqrt(sums.errors.second / sums.allowed.second);
    exceed(out, part / kMostMeanSquare,
           cat("the mean square of the errors has a root of ", part, " of the allowed ones' (",
               kMostMeanSquare, " is allowed)"));
  }
  if (sums.allowed.second > 0 && sums.wanted.effective_count() >= kMany) {
    const double scale = sums.along / sums.wanted.second;
    // A quarter is half a unit: equal values are all rounded the same way.
    const double most =
        kMostScale + each.relative / 4 + each.of_row / std::sqrt(static_cast<double>(rows));
    exceed(out, std::fabs(scale) / most,
           cat("the results together are ", 1 + scale, " times the wanted ones (", most,
               " off is allowed)"));
  }
}

void fail_at(Comparison& out, const std::string& message) {
  out.worst_excess = INFINITY;
  if (!out.ok) return;
  out.ok = false;
  out.first_failure = message;
}

// Byte offsets of the operand's elements from the allocation's start. None for block types, which
// have no gaps.
std::vector<int64_t> element_offsets(const Scene::Output& output) {
  const View& view = output.view.view();
  if (is_quantized(view.dtype)) return {};
  const int64_t width = info(view.dtype).block_bytes;
  const int64_t first =
      static_cast<std::byte*>(view.data) - static_cast<std::byte*>(output.stored.view().data);
  std::vector<int64_t> offsets(static_cast<size_t>(view.numel()));
  int64_t index[kMaxRank] = {};
  for (int64_t& offset : offsets) {
    offset = first;
    for (int i = 0; i < view.rank; ++i) offset += index[i] * view.strides[i] * width;
    for (int i = view.rank - 1; i >= 0 && ++index[i] == view.sizes[i]; --i) index[i] = 0;
  }
  return offsets;
}

// True where x becomes infinite in `dtype`.
bool overflows(double x, DType dtype) {
  if (dtype == DType::f16) return std::fabs(x) >= 65520;
  return (dtype == DType::f32 || dtype == DType::bf16) && std::fabs(x) > 3.4028235e38;
}

}  // namespace

Tolerance tolerance(Family family, DType dtype, DeviceKind device) {
  Row found = kRows[0];
  for (const Row& row : kRows) {
    const bool fits = row.family == family && row.dtype.value_or(dtype) == dtype &&
                      row.device.value_or(device) == device;
    if (fits) found = row;
  }
  const Resolution of_type = resolution(dtype);
  const bool in_blocks = family == Family::quant_product || family == Family::quant_gate;
  return {.relative = kRoom * found.units * of_type.unit,
          .of_largest = kRoom * found.of_largest,
          .absolute = kRoom * found.units * of_type.smallest,
          .of_row = in_blocks ? kMostOfRow : 0};
}

Tolerance with_lost_subnormals(Tolerance allowed, double largest_operand) {
  allowed.absolute += kRoom * 0x1p-14 * largest_operand;
  return allowed;
}

HostArray within_range(HostArray exact, DType dtype) {
  for (double& x : exact.values) {
    if (std::isnan(x)) continue;
    if (dtype == DType::f8e4m3) {
      x = std::clamp(x, -448.0, 448.0);
    } else if (overflows(x, dtype)) {
      x = std::copysign(INFINITY, x);
    } else if (is_integer(dtype)) {
      x += 0.0;
    }
  }
  return exact;
}

Comparison compare_values(const HostArray& got, const HostArray& want, const Tolerance& allowed) {
  Comparison out;
  if (!(got.shape == want.shape)) {
    fail_at(out, cat("shape (", got.shape, "), want (", want.shape, ')'));
    return out;
  }
  double largest = 0;
  for (const double x : want.values) {
    if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
  }
  const double base = allowed.of_largest * largest + allowed.absolute;
  Sums sums;
  for (int64_t i = 0; i < want.numel(); ++i) {
    const double most = allowed.relative * std::fabs(want[i]) + base;
    compare_one(out, i, got[i], want[i], most);
    if (largest > 0) sums.add((got[i] - want[i]) / largest, want[i] / largest, most / largest);
  }
  const int64_t columns = want.shape.rank() > 0 ? want.size(-1) : 1;
  compare_sums(out, sums, allowed, want.numel() / std::max<int64_t>(columns, 1));
  return out;
}

Comparison compare_outputs(const Scene::Output& got, const Scene::Output& want,
                           const Tolerance& allowed) {
  Comparison out = compare_values(read_values(got.view), read_values(want.view), allowed);
  const std::vector<int64_t> offsets = element_offsets(got);
  std::vector<std::byte> now = read_bytes(got.stored);
  const std::vector<std::byte> wanted = read_bytes(want.stored);
  const bool integers = is_integer(got.view.dtype());
  const auto width = static_cast<size_t>(info(got.view.dtype()).block_bytes);
  for (size_t i = 0; i < offsets.size(); ++i) {
    const auto at = static_cast<size_t>(offsets[i]);
    if (integers && std::memcmp(&now[at], &wanted[at], width) != 0) {
      fail_at(out, cat("element ", i, " differs"));
    }
    std::memcpy(&now[at], &got.initial[at], width);
  }
  if (!is_quantized(got.view.dtype()) && now != got.initial)
    fail_at(out, "an element outside of the operand was written");
  return out;
}

}  // namespace rbee::harness
