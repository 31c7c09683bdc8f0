#include "backends/gpu/ops/linear_slabs.h"

#include <algorithm>

#include "backends/api/dispatch_blocks.h"
#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/elementwise.h"
#include "backends/gpu/ops/linear.h"
#include "backends/gpu/ops/lt_products.h"
#include "backends/gpu/ops/pack_weight.h"
#include "backends/gpu/ops/product_input.h"
#include "backends/gpu/ops/tensor_linear.h"
#include "backends/shared/matvec_params.h"
#include "backends/shared/packed_weight.h"

namespace rbee::gpu {
namespace {

// Slabs are cut at multiples of this many outputs, which every tile divides.
constexpr int64_t kOuts = 256;
constexpr int64_t kThreads = 256;  // as in kernels/pack_weight.cu
// Bytes of products of terms at a time; second-level caches hold them until they are added.
constexpr int64_t kProductBytes = int64_t{32} << 20;

int64_t in_slabs(int64_t outs) {
  return std::max(outs / kOuts * kOuts, kOuts);
}
int64_t slab_outs(int64_t in) {
  return in_slabs(kSlabBytes / (2 * in));
}

void unpack(const View& weight, int64_t first, const View& slab, Stream& stream) {
  const int64_t in = weight.size(1);
  const int64_t outs = slab.size(0);
  int64_t row_bytes = 0;
  dispatch_blocks("linear", weight.dtype, [&]<typename Block>() {
    row_bytes = shared::packed_layout<Block>(in).row_bytes;
  });
  launch(
      stream,
      {.op = "linear",
       .family = "pack_weight",
       .kernel = KernelName("unpack_weight", weight.dtype),
       .grid = {.x = blocks_for(outs * (in / shared::kUnpackEach), kThreads)},
       .threads = kThreads},
      shared::UnpackParams{.packed = static_cast<const std::byte*>(weight.data) + first * row_bytes,
                           .plain = slab.data,
                           .rows = static_cast<int32_t>(outs),
                           .in = static_cast<int32_t>(in),
                           .type = slab.dtype == DType::f16 ? 0 : 1});
}

// Elements first to first + outs of the last axis.
View columns(View view, int64_t first, int64_t outs) {
  if (!view) return view;
  view.data = static_cast<std::byte*>(view.data) + first * info(view.dtype).block_bytes;
  view.sizes[view.rank - 1] = outs;
  return view;
}

// One product of operands of one type.
void multiply(const SlabProducts& products, const View& x, const LinearPart& part, Stream& stream) {
  const LinearArgs args{.x = x, .parts = {&part, 1}};
  if (products.library != nullptr && try_lt_linear(*products.library, args, stream)) return;
  for (const Impl<LinearArgs>& kernel : products.kernels) {
    if (kernel.refuse(args) == nullptr) return kernel.run(args, stream);
  }
  linear.run(args, stream);  // of f32
}

// The products of x's terms, one below another, and their sum.
void multiply_terms(const SlabProducts& products, const SplitInput& x, const LinearPart& part,
                    Stream& stream) {
  const int64_t rows = x.terms().size(0), outs = part.weight.size(0);
  const Scratch memory(stream, static_cast<size_t>(rows * outs) * sizeof(float));
  LinearPart terms{.weight = part.weight, .bias = {}, .y = part.y};
  terms.y.data = memory.as<void>();
  terms.y.sizes[0] = rows;
  terms.y.strides[0] = outs;
  multiply(products, x.terms(), terms, stream);
  x.join({.products = memory.as<const float>(), .bias = part.bias, .experts = {}, .y = part.y});
}

// Outputs at a time.
int64_t most_outs(const LinearArgs& args, const ProductKind& kind) {
  const int64_t outs = slab_outs(args.x.size(1));
  if (!kind.split) return outs;
  const int64_t rows = SplitInput::count(kind.type) * args.x.size(0);
  return std::min(outs, in_slabs(kProductBytes / (static_cast<int64_t>(sizeof(float)) * rows)));
}

void run_part(const SlabProducts& products, const LinearArgs& args, ProductInput& input,
              const LinearPart& part, void* memory, Stream& stream) {
  const ProductKind kind = product_kind(args.x.dtype, part.weight.dtype, args.may_round_to);
  const int64_t outs = part.weight.size(0);
  // Operands that are neither converted nor split into terms need no memory.
  const bool whole = !kind.split && part.weight.dtype == kind.type;
  const int64_t most = whole ? std::max<int64_t>(outs, 1) : most_outs(args, kind);
  for (int64_t first = 0; first < outs; first += most) {
    const int64_t count = std::min(most, outs - first);
    const LinearPart slab{.weight = slab_of(part.weight, first, count, kind.type, memory, stream),
                          .bias = columns(part.bias, first, count),
                          .y = columns(part.y, first, count)};
    if (kind.split) {
      multiply_terms(products, input.split(kind.type), slab, stream);
    } else {
      multiply(products, input.rounded(kind.type), slab, stream);
    }
  }
}

}  // namespace

View slab_of(const View& weight, int64_t first, int64_t outs, DType type, void* memory,
             Stream& stream) {
  View slab = weight;
  slab.dtype = type;
  slab.packing = 0;
  slab.data = memory;
  slab.sizes[0] = outs;
  slab.strides[0] = weight.size(1);
  slab.strides[1] = 1;
  if (weight.packing != 0) {
    unpack(weight, first, slab, stream);
    return slab;
  }
  View rows = slab;
  rows.dtype = weight.dtype;
  rows.data =
      static_cast<std::byte*>(weight.data) + first * row_bytes(weight.dtype, weight.size(1));
  if (weight.dtype == type) return rows;
  cast.run({.x = rows, .y = slab}, stream);
  return slab;
}

const char* refuse_linear_slabs(const LinearArgs& args) {
  bool other = false;
  for (const LinearPart& part : args.parts) {
    const View& weight = part.weight;
    if (weight.dtype == DType::f64) return "would round the weight";
    if (weight.dtype == DType::f32 && args.x.dtype != DType::f32) return "would round the weight";
    if (is_quantized(weight.dtype) && weight.packing != kPlanesPacking) {
      return "reads block types packed";
    }
    if (weight.size(1) > kSlabBytes / (2 * kOuts)) return "rows are too long for a slab";
    other = other || args.x.dtype != weight.dtype;
  }
  return other ? refuse_tensor_shapes(args) : "takes weights of another type than x";
}

void run_linear_slabs(const SlabProducts& products, const LinearArgs& args, Stream& stream) {
  int64_t outs = 0;  // of a weight that is converted
  for (const LinearPart& part : args.parts) {
    const DType type = product_kind(args.x.dtype, part.weight.dtype, args.may_round_to).type;
    if (part.weight.dtype != type) outs = std::max(outs, part.weight.size(0));
  }
  const int64_t in = args.x.size(1);
  const Scratch memory(stream, static_cast<size_t>(std::min(outs, slab_outs(in)) * in * 2));
  ProductInput input("linear", args.x, stream);
  for (const LinearPart& part : args.parts) {
    run_part(products, args, input, part, memory.as<void>(), stream);
  }
}

}  // namespace rbee::gpu
