#include "backends/gpu/ops/lt_products.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "backends/api/kernel_table.h"
#include "backends/gpu/run_first.h"

namespace rbee::gpu {
namespace {

constexpr int64_t kFewRows = 8;
constexpr int64_t kMostSize = std::numeric_limits<int32_t>::max();

bool product_dtype(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

// A row-major matrix is its transpose in columns: y^T = weight * x^T + residual^T.
LtProduct product_of(const View& x, const LinearPart& part, const View& residual) {
  const View& weight = part.weight;
  const int64_t rows = x.size(0), outs = weight.size(0), depth = x.size(1);
  return {.op = "linear",
          .type = weight.dtype,
          .result = part.y.dtype,
          .transpose_a = true,
          .m = outs,
          .n = rows,
          .k = depth,
          .a_pitch = depth,
          .b_pitch = depth,
          .d_pitch = std::max(part.y.stride(0), outs),
          .a = weight.data,
          .b = x.data,
          .bias = part.bias.data,
          .added = residual.data,
          .d = part.y.data};
}

// A matrix of a row-major view as a column-major one: unchanged, it is the transpose.
struct Columns {
  bool transpose;  // of the matrix in memory, to get the view's transpose
  int64_t pitch;
};

std::optional<Columns> columns_of(const View& view) {
  const int64_t rows = view.size(-2), columns = view.size(-1);
  // Along an axis of size 1 any stride will do.
  if (view.stride(-1) == 1 || columns == 1) {
    const int64_t pitch = rows == 1 ? columns : view.stride(-2);
    if (pitch >= columns) return Columns{.transpose = false, .pitch = pitch};
  }
  if (view.stride(-2) == 1 || rows == 1) {
    const int64_t pitch = columns == 1 ? rows : view.stride(-1);
    if (pitch >= rows) return Columns{.transpose = true, .pitch = pitch};
  }
  return std::nullopt;
}

// Elements between neighbouring matrices if all are evenly spaced; 0 if there is one.
std::optional<int64_t> batch_stride(const View& view) {
  std::optional<int64_t> stride;
  int64_t matrices = 1;  // in the axes so far
  for (int axis = view.rank - 3; axis >= 0; --axis) {
    if (view.sizes[axis] == 1) continue;
    if (!stride) {
      stride = view.strides[axis];
    } else if (view.strides[axis] != *stride * matrices) {
      return std::nullopt;
    }
    matrices *= view.sizes[axis];
  }
  return stride.value_or(0);
}

int64_t batch_of(const View& view) {
  int64_t matrices = 1;
  for (int axis = 0; axis + 2 < view.rank; ++axis) matrices *= view.sizes[axis];
  return matrices;
}

LtProduct product_of(const MatmulArgs& args) {
  // y^T = b^T * a^T, and memory holds the transposes.
  const Columns a = *columns_of(args.b), b = *columns_of(args.a), d = *columns_of(args.y);
  return {.op = "matmul",
          .type = args.y.dtype,
          .result = args.y.dtype,
          .transpose_a = a.transpose,
          .transpose_b = b.transpose,
          .m = args.y.size(-1),
          .n = args.y.size(-2),
          .k = args.a.size(-1),
          .a_pitch = a.pitch,
          .b_pitch = b.pitch,
          .d_pitch = d.pitch,
          .batch = batch_of(args.y),
          .a_stride = *batch_stride(args.b),
          .b_stride = *batch_stride(args.a),
          .d_stride = *batch_stride(args.y),
          .a = args.b.data,
          .b = args.a.data,
          .d = args.y.data};
}

const char* refuse_view(const View& view) {
  if (!columns_of(view)) return "a matrix has no unit stride";
  if (!batch_stride(view)) return "matrices of the batch do not lie evenly";
  if (view.size(-1) > kMostSize || view.size(-2) > kMostSize || batch_of(view) > kMostSize) {
    return "sizes of 2^31 and more";
  }
  return nullptr;
}

}  // namespace

const char* refuse_lt_linear(const LtLibrary& library, const LinearArgs& args) {
  if (library.refusal() != nullptr) return library.refusal();
  if (args.x.size(0) <= kFewRows) return "takes more than 8 rows";
  if (args.x.size(1) == 0) return "takes a depth of at least 1";
  for (const LinearPart& part : args.parts) {
    const View& weight = part.weight;
    if (weight.packing != 0 || !product_dtype(weight.dtype)) return "takes f32, f16, bf16 weights";
    if (args.x.dtype != weight.dtype) return "takes operands of one type";
    if (weight.size(0) == 0) return "takes at least one output";
    // For such sizes cuBLASLt has kernels that round the product before they add the bias.
    if (part.bias && part.y.dtype != DType::f32 && (weight.size(0) | weight.size(1)) % 8 != 0) {
      return "takes sizes that are multiples of 8 with a bias in 16 bits";
    }
    if (std::max({args.x.size(0), weight.size(0), weight.size(1)}) > kMostSize) {
      return "sizes of 2^31 and more";
    }
  }
  return nullptr;
}

const char* refuse_lt_linear_on(LtLibrary& library, const LinearArgs& args, Stream& stream) {
  for (const LinearPart& part : args.parts) {
    const char* reason = library.refusal(product_of(args.x, part, {}), stream);
    if (reason != nullptr) return reason;
  }
  return nullptr;
}

bool try_lt_linear(LtLibrary& library, const LinearArgs& args, Stream& stream) {
  if (refuse_lt_linear(library, args) != nullptr) return false;
  for (const LinearPart& part : args.parts) {
    if (!library.run(product_of(args.x, part, {}), stream)) return false;
  }
  return true;
}

void run_lt_linear(LtLibrary& library, const LinearArgs& args, Stream& stream) {
  if (!try_lt_linear(library, args, stream))
    run_first(stream.device->kernels().linear, args, stream);
}

const char* refuse_lt_fused_linear(const LtLibrary& library, const FusedLinearArgs& args) {
  if (args.norm_weight || args.gated || !args.residual) return "adds a residual and nothing else";
  if (!args.parts[0].y.contiguous()) return "writes results without gaps";
  return refuse_lt_linear(library, {.x = args.x, .parts = args.parts});
}

const char* refuse_lt_fused_linear_on(LtLibrary& library, const FusedLinearArgs& args,
                                      Stream& stream) {
  return library.refusal(product_of(args.x, args.parts[0], args.residual), stream);
}

void run_lt_fused_linear(LtLibrary& library, const FusedLinearArgs& args, Stream& stream) {
  const LinearPart& part = args.parts[0];
  if (library.run(product_of(args.x, part, args.residual), stream)) return;
  const KernelTable& kernels = stream.device->kernels();
  run_first(kernels.linear, LinearArgs{.x = args.x, .parts = args.parts}, stream);
  run_first(kernels.binary, BinaryArgs{BinaryOp::add, part.y, args.residual, part.y}, stream);
}

const char* refuse_lt_matmul(const LtLibrary& library, const MatmulArgs& args) {
  if (library.refusal() != nullptr) return library.refusal();
  if (!product_dtype(args.y.dtype) && args.y.dtype != DType::f64) {
    return "takes f32, f64, f16 and bf16";
  }
  if (args.y.numel() == 0 || args.a.size(-1) == 0) return "takes matrices with elements";
  for (const View* view : {&args.a, &args.b, &args.y}) {
    if (const char* reason = refuse_view(*view)) return reason;
  }
  return columns_of(args.y)->transpose ? "writes rows only" : nullptr;
}

const char* refuse_lt_matmul_on(LtLibrary& library, const MatmulArgs& args, Stream& stream) {
  return library.refusal(product_of(args), stream);
}

void run_lt_matmul(LtLibrary& library, const MatmulArgs& args, Stream& stream) {
  if (library.run(product_of(args), stream)) return;
  run_first(stream.device->kernels().matmul, args, stream);
}

}  // namespace rbee::gpu
