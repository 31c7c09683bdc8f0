#include "tests/support/dot.h"

#include "rbee/core/error.h"

namespace rbee::harness {
namespace {

// Sanitizers would check each element, and formulas take long as it is.
__attribute__((no_sanitize("address", "undefined"))) double sum_of(const double* a, const double* b,
                                                                   int64_t count) {
  double sum = 0;
  for (int64_t k = 0; k < count; ++k) sum += a[k] * b[k];
  return sum;
}

}  // namespace

double dot(const HostArray& a, int64_t a_first, const HostArray& b, int64_t b_first,
           int64_t count) {
  check(
      a_first >= 0 && b_first >= 0 && a_first + count <= a.numel() && b_first + count <= b.numel(),
      "dot", "elements ", a_first, " and ", b_first, " with ", count, " are outside of ", a.numel(),
      " and ", b.numel());
  return sum_of(a.values.data() + a_first, b.values.data() + b_first, count);
}

}  // namespace rbee::harness
