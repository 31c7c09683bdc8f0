#pragma once
// How far a result may be from the wanted one: one table for all operations and backends.

#include <cstdint>
#include <string>

#include "rbee/core/device_id.h"
#include "rbee/core/dtype.h"
#include "tests/support/scene.h"

namespace rbee::harness {

// Operations whose errors have the same source.
enum class Family : uint8_t {
  exact,            // moves or selects elements, or computes in integers: bit for bit
  elementwise,      // a few correctly rounded steps
  function,         // exp, erf, ... of one element
  reduction,        // sums of one row
  norm,             // statistics of a row, then element-wise
  product,          // dot products in f32: matmul, convolutions, linear with plain weights
  rounded_product,  // the same with one operand rounded to the other's type, f16 or bf16
  quant_product,    // dot products with activations rounded to 8-bit blocks
  quant_gate,       // a product of two such
  attention,        // two products around a softmax
};

// |got - want| <= relative * |want| + of_largest * (largest finite |want|) + absolute
struct Tolerance {
  double relative = 0;
  double of_largest = 0;
  double absolute = 0;
  // By how much more than others the results of one row may together be too large, in parts.
  double of_row = 0;
};
Tolerance tolerance(Family family, DType dtype, DeviceKind device);

// Exact values as far as `dtype` can hold them: beyond its range they become infinities (f8e4m3:
// its largest number), and integers have no -0. Nothing else is rounded.
HostArray within_range(HostArray exact, DType dtype);

struct Comparison {
  bool ok = true;
  double worst_absolute = 0;
  double worst_relative = 0;  // of |want|, where that is not 0
  double worst_excess = 0;    // error / allowed error; above 1 fails
  std::string first_failure;  // "element 17: got 1.5, want 2 (allowed error 0.001)"
};

// Equal values pass; without a tolerance -0 is not 0. Any NaN equals any NaN.
Comparison compare_values(const HostArray& got, const HostArray& want, const Tolerance& allowed);
// Also compares integers exactly, and elements outside of the operand with what they held before.
Comparison compare_outputs(const Scene::Output& got, const Scene::Output& want,
                           const Tolerance& allowed);

}  // namespace rbee::harness
