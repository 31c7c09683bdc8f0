#include "rbee/nn/weight_packer.h"

#include "rbee/nn/dequantised.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/experts.h"
#include "rbee/ops/image.h"
#include "rbee/ops/linear.h"

namespace rbee::nn {

Tensor WeightPacker::matrix(const std::string& name, const PlainMatrix& plain) const {
  const Tensor& rows = plain.rows;
  const bool quantize = options_.quantizes(name, rows.dtype(), rows.dim(1));
  if (!quantize && !options_.narrows(rows.dtype())) return pack(rows, plain.let_go);
  const Tensor packed = pack(quantize ? quantized(rows) : cast(rows, DType::bf16));
  if (plain.let_go) plain.let_go(rows.dim(0));
  return packed;
}

Tensor WeightPacker::pack(const Tensor& plain,
                          const std::function<void(int64_t rows)>& on_packed) const {
  const Tensor packed = options_.pack ? pack_weight(plain, on_packed) : plain;
  books_.add_resident(packed.packing() != 0 ? static_cast<int64_t>(packed.buffer()->bytes())
                                            : plain.bytes());
  return packed;
}

Tensor WeightPacker::conv(const std::string& name, const Tensor& plain) const {
  const bool sixteen_bits = plain.dtype() == DType::f16 || plain.dtype() == DType::bf16;
  // CPUs widen 16-bit weights as they go: half the memory, and less to read. What meets
  // activations of bf16 is bf16 itself, for instructions that take nothing else.
  const bool kept =
      options_.device->host_accessible() && options_.activations != DType::bf16 && sixteen_bits;
  const bool quantize = options_.quantizes(name, plain.dtype(), plain.dim(1));
  const Tensor packed = quantize
                            ? pack_channels_last(quantized(contiguous(plain.permute({0, 2, 3, 1}))))
                            : pack_conv_weight(kept ? plain : cast(plain, options_.activations));
  books_.add_resident(static_cast<int64_t>(packed.buffer()->bytes()));
  return packed;
}

Tensor WeightPacker::experts(int64_t count,
                             const std::function<Tensor(int64_t expert)>& one) const {
  const auto layout = options_.pack ? ExpertLayout::packed : ExpertLayout::plain;
  const Tensor stack = pack_experts(count, one, layout);
  books_.add_resident(static_cast<int64_t>(stack.buffer()->bytes()));
  return stack;
}

}  // namespace rbee::nn
