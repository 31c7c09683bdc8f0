#pragma once
// The largest allowed difference of a result: one table for all operations and backends.

#include <cstdint>
#include <string>

#include "rbee/core/device_id.h"
#include "rbee/core/dtype.h"
#include "tests/support/scene.h"

namespace rbee::harness {

// Operations whose errors have the same cause.
enum class Family : uint8_t {
  exact,              // moves or selects elements, or computes in integers: bit for bit
  elementwise,        // a few correctly rounded steps
  function,           // exp, erf, ... of one element
  reduction,          // sums of one row
  norm,               // statistics of a row, then element-wise
  product,            // dot products in f32: matmul, convolutions, linear with plain weights
  rounded_product,    // the same with one operand rounded to the other's type, f16 or bf16
  quant_product,      // dot products with activations rounded to 8-bit blocks
  quant_gate,         // a product of two such
  attention,          // two products around a softmax
  rounded_attention,  // the same with f32 queries and weights rounded to f16 or bf16
};

// |got - want| <= relative * |want| + of_largest * (largest finite |want|) + absolute
struct Tolerance {
  double relative = 0;
  double of_largest = 0;
  double absolute = 0;
  // The results of one row may together exceed the others' bound by this part.
  double of_row = 0;
};
// `dtype`: of the result; of rounded_attention the type that is rounded to.
Tolerance tolerance(Family family, DType dtype, DeviceKind device);
// The same for products of f16 numbers where numbers below 2^-14 may be taken for zeros.
// `largest_operand`: of all operands' magnitudes.
Tolerance with_lost_subnormals(Tolerance allowed, double largest_operand);

// Rounds exact values only to the limits of `dtype`: values beyond its range become infinities
// (f8e4m3: its largest number), and integers have no -0.
HostArray within_range(HostArray exact, DType dtype);

struct Comparison {
  bool ok = true;
  double worst_absolute = 0;
  double worst_relative = 0;  // part of |want|, if that is not 0
  double worst_excess = 0;    // error / allowed error; above 1 fails
  std::string first_failure;  // "element 17: got 1.5, want 2 (allowed error 0.001)"
};

// Equal values pass; with zero tolerance, 0 and -0 differ. Any NaN equals any NaN.
Comparison compare_values(const HostArray& got, const HostArray& want, const Tolerance& allowed);
// Also compares integers exactly, and the bytes outside the operand with their values before.
Comparison compare_outputs(const Scene::Output& got, const Scene::Output& want,
                           const Tolerance& allowed);

}  // namespace rbee::harness
