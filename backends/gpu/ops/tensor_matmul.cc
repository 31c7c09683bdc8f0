#include "backends/gpu/ops/tensor_matmul.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/loop.h"
#include "backends/gpu/ops/elementwise.h"
#include "backends/gpu/ops/float_number.h"

namespace rbee::gpu {
namespace {

constexpr int64_t kPack = 8;          // elements of 16 bytes
constexpr int64_t kEnoughLines = 64;  // of the other operand: enough to pay for rewriting one
constexpr int64_t kMostLaunches = 32;
constexpr int64_t kMostMatrices = 65535;  // of a launch: what CUDA takes along y
constexpr int64_t kMostSize = std::numeric_limits<int32_t>::max() / 2;

// y = x * weight^T: (batch..., rows, outs), (batch..., rows, depth) and (batch..., outs, depth).
struct Product {
  View x, weight, y;
};

View turned(View view) {
  std::swap(view.sizes[view.rank - 2], view.sizes[view.rank - 1]);
  std::swap(view.strides[view.rank - 2], view.strides[view.rank - 1]);
  return view;
}

bool has_rows(const View& y) {
  return y.stride(-1) == 1 || y.size(-1) == 1;
}

// If y has whole columns in memory, y^T = b^T * a^T has whole rows.
Product product_of(const MatmulArgs& args) {
  if (has_rows(args.y)) return {.x = args.a, .weight = turned(args.b), .y = args.y};
  return {.x = turned(args.b), .weight = args.a, .y = turned(args.y)};
}

DType multiplied_type(DType type) {
  return type == DType::f8e4m3 ? DType::f16 : type;
}

bool aligned(const View& view, uintptr_t bytes) {
  return reinterpret_cast<uintptr_t>(view.data) % bytes == 0;
}

// True if all axes but the last are steps of whole `each`.
bool steps_by(const View& view, int64_t each) {
  for (int axis = 0; axis + 1 < view.rank; ++axis) {
    if (view.sizes[axis] != 1 && view.strides[axis] % each != 0) return false;
  }
  return true;
}

// True if kernels can read the operand without rewriting.
bool readable(const View& view, DType type) {
  return view.dtype == type && view.stride(-1) == 1 && view.size(-1) % kPack == 0 &&
         aligned(view, 16) && steps_by(view, kPack) &&
         std::abs(view.stride(-2)) <= std::numeric_limits<int32_t>::max();
}

// Kernels write neighbours as pairs if rows have an even pitch.
bool writable(const View& y) {
  return y.stride(-2) % 2 != 0 || (aligned(y, 4) && steps_by(y, 2));
}

// The axes of the batch, as few as describe them.
Loop<3> batch_of(const Product& product) {
  return loop_over<3>({&product.y, &product.x, &product.weight}, 3U << (product.y.rank - 2));
}

int64_t matrices_of_launch(const Loop<3>& batch) {
  return batch.rank == 0 ? 1 : *std::max_element(batch.sizes, batch.sizes + batch.rank);
}

// An operand in the kernels' form. The object owns the memory and frees it in stream order.
class Readable {
 public:
  Readable(const View& from, DType type, Stream& stream) : view_(from) {
    if (readable(from, type)) return;
    rewrite(from, type, stream);
  }
  const View& view() const { return view_; }

 private:
  // Zeros pad depths that are not whole packs. A repeating axis stays one matrix.
  void rewrite(View from, DType type, Stream& stream) {
    const int last = from.rank - 1;
    const int64_t depth = from.sizes[last];
    view_.dtype = type;
    view_.sizes[last] = (depth + kPack - 1) / kPack * kPack;
    int64_t step = 1;
    for (int axis = last; axis >= 0; --axis) {
      const bool repeats = from.strides[axis] == 0 && axis + 2 < from.rank;
      view_.strides[axis] = repeats ? 0 : step;
      if (repeats) {
        from.sizes[axis] = 1;
      } else {
        step *= view_.sizes[axis];
      }
    }
    memory_.emplace(stream, static_cast<size_t>(step * info(type).block_bytes));
    view_.data = memory_->as<void>();
    View to = view_;
    std::copy(from.sizes, from.sizes + last, to.sizes);
    View rest = to;
    to.sizes[last] = depth;
    rest.sizes[last] -= depth;
    rest.data = memory_->as<std::byte>() + depth * info(type).block_bytes;
    if (rest.sizes[last] > 0) fill.run({.y = rest, .value = 0}, stream);
    if (from.dtype == type) {
      copy.run({.x = from, .y = to}, stream);
    } else {
      cast.run({.x = from, .y = to}, stream);
    }
  }

  View view_;
  std::optional<Scratch> memory_;
};

shared::GemmParams params_of(const Product& product) {
  return {.x = product.x.data,
          .weight = product.weight.data,
          .bias = nullptr,
          .y = product.y.data,
          .rows = static_cast<int32_t>(product.y.size(-2)),
          .outs = static_cast<int32_t>(product.y.size(-1)),
          .depth = static_cast<int32_t>(product.x.size(-1)),
          .y_type = float_number(product.y.dtype),
          .y_row = product.y.stride(-2),
          .x_row = static_cast<int32_t>(product.x.stride(-2)),
          .weight_row = static_cast<int32_t>(product.weight.stride(-2)),
          .x_matrix = 0,
          .weight_matrix = 0,
          .y_matrix = 0};
}

// Launches go along the longest axis of the batch.
void multiply(const TensorTiles& tiles, const Product& product, Stream& stream) {
  const Loop<3> batch = batch_of(product);
  const int64_t matrices = matrices_of_launch(batch);
  const auto longest =
      static_cast<int>(std::find(batch.sizes, batch.sizes + batch.rank, matrices) - batch.sizes);
  const int64_t launches = batch.count() / matrices;
  for (int64_t i = 0; i < launches * ((matrices + kMostMatrices - 1) / kMostMatrices); ++i) {
    const int64_t first = i / launches * kMostMatrices;
    std::byte* data[3];
    int64_t bytes_of_step[3] = {};
    for (int k = 0; k < 3; ++k) {
      const auto& operand = batch.operands[k];
      data[k] = operand.data;
      int64_t rest = i % launches;
      for (int axis = 0; axis < batch.rank; ++axis) {
        const int64_t bytes = operand.strides[axis] * operand.bytes;
        if (axis == longest) {
          bytes_of_step[k] = bytes;
          data[k] += first * bytes;
        } else {
          data[k] += rest % batch.sizes[axis] * bytes;
          rest /= batch.sizes[axis];
        }
      }
    }
    shared::GemmParams params = params_of(product);
    params.y = data[0];
    params.x = data[1];
    params.weight = data[2];
    params.y_matrix = bytes_of_step[0];
    params.x_matrix = bytes_of_step[1];
    params.weight_matrix = bytes_of_step[2];
    launch_tensor_product(tiles,
                          {.op = "matmul",
                           .type = product.x.dtype,
                           .params = params,
                           .matrices = std::min(matrices - first, kMostMatrices)},
                          stream);
  }
}

// The same sizes in f32, without gaps.
View sums_of(View y, void* data) {
  y.data = data;
  y.dtype = DType::f32;
  int64_t step = 1;
  for (int axis = y.rank - 1; axis >= 0; --axis) {
    y.strides[axis] = step;
    step *= y.sizes[axis];
  }
  return y;
}

}  // namespace

const char* refuse_tensor_matmul(const MatmulArgs& args) {
  const DType type = args.y.dtype;
  if (type != DType::f16 && type != DType::bf16 && type != DType::f8e4m3) {
    return "takes f16, bf16 and f8e4m3";
  }
  if (args.y.numel() == 0 || args.a.size(-1) == 0) return "takes matrices with elements";
  const Product product = product_of(args);
  const View& y = product.y;
  if (std::max({y.size(-2), y.size(-1), args.a.size(-1)}) > kMostSize) {
    return "more than 2^30 rows or columns";
  }
  if (type != DType::f8e4m3 && (!has_rows(y) || !writable(y))) {
    return "y has no whole rows of pairs";
  }
  const DType multiplied = multiplied_type(type);
  if ((!readable(product.x, multiplied) && y.size(-1) < kEnoughLines) ||
      (!readable(product.weight, multiplied) && y.size(-2) < kEnoughLines)) {
    return "too few lines pay for an operand that is rewritten";
  }
  const Loop<3> batch = batch_of(product);
  if (batch.count() / matrices_of_launch(batch) > kMostLaunches) {
    return "matrices of the batch lie unevenly";
  }
  return nullptr;
}

void run_tensor_matmul(const TensorTiles& tiles, const MatmulArgs& args, Stream& stream) {
  Product product = product_of(args);
  const DType type = multiplied_type(args.y.dtype);
  const Readable x(product.x, type, stream), weight(product.weight, type, stream);
  product.x = x.view();
  product.weight = weight.view();
  if (args.y.dtype == type) return multiply(tiles, product, stream);
  const View y = product.y;
  const Scratch sums(stream, static_cast<size_t>(y.numel()) * sizeof(float));
  product.y = sums_of(y, sums.as<void>());
  multiply(tiles, product, stream);
  cast.run({.x = product.y, .y = y}, stream);
}

}  // namespace rbee::gpu
