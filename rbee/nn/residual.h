#pragma once

#include "rbee/nn/norm.h"

namespace rbee::nn {

// The residual stream of a transformer. A branch that was added stays pending until the next norm,
// so that the sum and the norm are one kernel.
class Residual {
 public:
  explicit Residual(Tensor x) : sum_(std::move(x)) {}  // x: (tokens, dim)

  void add(const Tensor& branch);
  Tensor norm(const RmsNorm& norm);
  // Goes on with the rows picked by `rows`: (n) i32 only; undefined = all.
  void keep_rows(const Tensor& rows);
  const Tensor& value();

 private:
  Tensor sum_;
  Tensor pending_;
};

}  // namespace rbee::nn
