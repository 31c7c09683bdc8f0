#pragma once
// Converts the input of linear layers for matrix units: to 16 bits, like the weights.

#include <optional>

#include "backends/api/view.h"
#include "backends/gpu/gpu_device.h"
#include "backends/shared/product_params.h"

namespace rbee::gpu {

// How x is multiplied by a weight: the type of both operands, and whether x, in f32, is split into
// terms of that type (SplitInput) instead of being rounded.
struct ProductKind {
  DType type;
  bool split = false;
};

// 16-bit x keeps its type. f32 is multiplied as it is with f32, and in terms with weights whose
// values 16 bits hold: f16, bf16 and f8. Blocks are rounded to 16 bits anyhow, and x with them: to
// `may_round_to`, or bf16 where that is f32. may_round_to is LinearArgs'.
ProductKind product_kind(DType x, DType weight, DType may_round_to);

// x, (rows, depth) f32, as terms of f16 or bf16; see SplitXParams. The object owns the memory and
// frees it in stream order.
class SplitInput {
 public:
  // x is contiguous and aligned to 16 bytes, its depth a multiple of 4.
  SplitInput(const char* op, const View& x, DType type, Stream& stream);

  static int count(DType type);
  // All terms' rows, one term after another: (count * rows, depth).
  View terms() const { return terms_; }

  // y(rows, outs) from products (count, rows, outs), both f32: adds them and the bias. `experts`
  // gives each row's row of the bias; absent: there is one. `each` rows belong to a row of x.
  struct Join {
    const float* products;
    View bias, experts, y;
    int32_t each = 1;
  };
  void join(const Join& join) const;

 private:
  const char* op_;
  Stream& stream_;
  Scratch memory_;
  View terms_;
  const float* scales_;
};

// x, and its forms for each kind of product, made at the first request.
class ProductInput {
 public:
  ProductInput(const char* op, const View& x, Stream& stream) : op_(op), x_(x), stream_(stream) {}

  // Rounded to `type`, or x itself if that is its type.
  View rounded(DType type);
  // type: f16 or bf16.
  const SplitInput& split(DType type);

 private:
  // The forms for one type.
  struct Made {
    std::optional<Scratch> rounded;
    std::optional<SplitInput> split;
  };
  Made& made(DType type) { return type == DType::f16 ? f16_ : bf16_; }

  const char* op_;
  const View& x_;
  Stream& stream_;
  Made f16_, bf16_;
};

}  // namespace rbee::gpu
