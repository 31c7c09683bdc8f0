#pragma once
// Turns plain tensors into weights in the form that the device's kernels multiply.

#include <cstdint>
#include <functional>
#include <string>

#include "rbee/nn/weight_reader.h"

namespace rbee::nn {

class WeightPacker {
 public:
  // Keeps references to both.
  WeightPacker(const WeightOptions& options, WeightBooks& books)
      : options_(options), books_(books) {}

  // For linear(), in the type of the product: the matrix's own, q8_0 or bf16.
  Tensor matrix(const std::string& name, const PlainMatrix& plain) const;
  // For linear(), in the matrix's own type.
  Tensor pack(const Tensor& plain, const std::function<void(int64_t rows)>& on_packed = {}) const;
  // For image_conv(): (out, in, kernel_h, kernel_w).
  Tensor conv(const std::string& name, const Tensor& plain) const;
  // For expert_linear(): `one` gives each expert's matrix in turn.
  Tensor experts(int64_t count, const std::function<Tensor(int64_t expert)>& one) const;

 private:
  const WeightOptions& options_;
  WeightBooks& books_;
};

}  // namespace rbee::nn
