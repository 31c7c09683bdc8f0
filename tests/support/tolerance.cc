#include "tests/support/tolerance.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

namespace rbee::harness {
namespace {

struct Row {
  Family family;
  std::optional<DType> dtype;        // of the output; empty: every type
  std::optional<DeviceKind> device;  // empty: every kind
  double units;                      // of relative error, see unit()
  double of_largest;                 // as in Tolerance
};

// The last row that fits counts; a looser row after a family's first one says why.
constexpr Row kRows[] = {
    {Family::exact, {}, {}, 0, 0},
    // A value next to a rounding boundary may fall on its other side; a sum of two terms, fused or
    // not, has the error of its terms.
    {Family::elementwise, {}, {}, 1, 1e-7},
    {Family::elementwise, DType::f64, {}, 1, 2e-16},
    // A number next to a boundary may be rounded to its other side, a step of 1/127 of the largest.
    {Family::elementwise, DType::q8_0, {}, 0, 0.0083},
    {Family::function, {}, {}, 1, 1e-7},
    // Own formulas in f32 are good to about 2 ulp of their terms, and two of them are compared.
    {Family::function, DType::f32, {}, 4, 1e-7},
    {Family::function, DType::f64, {}, 8, 1e-15},
    // The order of a sum is free; cancellation makes the error relative to the terms.
    {Family::reduction, {}, {}, 1, 1e-5},
    {Family::reduction, DType::f64, {}, 4, 1e-13},
    {Family::norm, {}, {}, 1, 1e-6},
    {Family::norm, DType::f32, {}, 4, 1e-6},
    {Family::norm, DType::f64, {}, 8, 1e-14},
    {Family::product, {}, {}, 1, 1e-5},
    {Family::product, DType::f64, {}, 8, 1e-14},
    {Family::product, DType::q8_0, {}, 0, 0.0083},  // as above
    // bf16 keeps 8 bits; over a dot product the errors of its roundings average out.
    {Family::rounded_product, {}, {}, 1, 4e-3},
    // One step of an 8-bit block is 1/127 of its largest activation; over a dot product the errors
    // average out to below a fiftieth of the largest result.
    {Family::quant_product, {}, {}, 1, 0.02},
    // The relative errors of both factors add up.
    {Family::quant_gate, {}, {}, 1, 0.04},
    {Family::attention, {}, {}, 2, 1e-5},
    // Probabilities may be rounded to the operands' type before the second product.
    {Family::attention, DType::f16, {}, 2, 2e-3},
    {Family::attention, DType::bf16, {}, 2, 1e-2},
};

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

void compare_one(Comparison& out, int64_t i, double got, double want, double allowed) {
  if (same_bits(got, want)) return;
  double error = std::fabs(got - want);
  if (std::isnan(error)) error = INFINITY;  // NaN or infinity on one side, or opposite infinities
  out.worst_absolute = std::max(out.worst_absolute, error);
  if (want != 0) out.worst_relative = std::max(out.worst_relative, error / std::fabs(want));
  const double excess = allowed > 0 ? error / allowed : INFINITY;
  out.worst_excess = std::max(out.worst_excess, excess);
  if (excess <= 1 || !out.ok) return;
  out.ok = false;
  out.first_failure =
      cat("element ", i, ": got ", got, ", want ", want, " (allowed error ", allowed, ')');
}

void fail_at(Comparison& out, const std::string& message) {
  out.worst_excess = INFINITY;
  if (!out.ok) return;
  out.ok = false;
  out.first_failure = message;
}

// Offsets in bytes, from the allocation's start, of the operand's elements. Blocks: none, since
// such an operand has no gaps.
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
  return {.relative = found.units * of_type.unit,
          .of_largest = found.of_largest,
          .absolute = found.units * of_type.smallest};
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
  for (int64_t i = 0; i < want.numel(); ++i) {
    compare_one(out, i, got[i], want[i], allowed.relative * std::fabs(want[i]) + base);
  }
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
