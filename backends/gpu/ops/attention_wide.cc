// Attention with heads too wide for tiles in registers, as in the middle of an image model's
// autoencoder: two products and a softmax, some queries at a time, so that their scores take little
// memory. Queries and weights pass through f32, which the products may round to the operands' type,
// so that scores keep the precision of their sums.
#include <algorithm>

#include "backends/api/kernel_table.h"
#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/attention.h"
#include "backends/gpu/run_first.h"

namespace rbee::gpu {
namespace {

constexpr int64_t kMostTiled = 256;        // elements of a head; wider ones come here
constexpr int64_t kFewestQueries = 32;     // with fewer, products are too small to gain
constexpr int64_t kMostScores = 8L << 20;  // at a time

const char* refuse(const AttentionArgs& args) {
  if (args.q.dtype != DType::f16 && args.q.dtype != DType::bf16) return "takes f16 and bf16";
  if (std::max(args.q.size(3), args.v.size(3)) <= kMostTiled) return "takes wide heads";
  if (args.q.size(2) < kFewestQueries || args.k.numel() == 0) return "takes more queries";
  if (args.causal || args.window > 0) return "every query sees every key";
  return shaped_scores(attention_params(args)) ? "scores are more than products" : nullptr;
}

// A contiguous matrix.
View matrix(void* data, DType dtype, int64_t rows, int64_t columns) {
  View view;
  view.data = data;
  view.dtype = dtype;
  view.rank = 2;
  view.sizes[0] = rows;
  view.sizes[1] = columns;
  view.strides[0] = columns;
  view.strides[1] = 1;
  return view;
}

// Rows [first, first + rows) of one head: (rows, elements).
View rows_of_head(const View& view, int64_t batch, int64_t head, int64_t first, int64_t rows) {
  const int64_t at = batch * view.stride(0) + head * view.stride(1) + first * view.stride(2);
  View out = matrix(view.as<std::byte>() + at * info(view.dtype).block_bytes, view.dtype, rows,
                    view.size(3));
  out.strides[0] = view.stride(2);
  out.strides[1] = view.stride(3);
  return out;
}

View transposed(View view) {
  std::swap(view.sizes[0], view.sizes[1]);
  std::swap(view.strides[0], view.strides[1]);
  return view;
}

class WideHeads {
 public:
  WideHeads(const AttentionArgs& args, Stream& stream)
      : args_(args),
        stream_(stream),
        kernels_(stream.device->kernels()),
        chunk_(std::clamp<int64_t>(kMostScores / args.k.size(2), 1, args.q.size(2))),
        keys_(stream, bytes(args.k.size(2) * args.k.size(3))),
        values_(stream, bytes(args.v.size(2) * args.v.size(3))),
        queries_(stream, float_bytes(chunk_ * args.q.size(3))),
        scores_(stream, float_bytes(chunk_ * args.k.size(2))),
        weights_(stream, float_bytes(chunk_ * args.k.size(2))),
        results_(stream, float_bytes(chunk_ * args.v.size(3))) {}

  // Copies keys and values first: products may read their second operand ahead of all kernels but
  // copies (FusedLinearArgs).
  void attend(int64_t batch, int64_t head) {
    const int64_t keys = args_.k.size(2), of_keys = head / (args_.q.size(1) / args_.k.size(1));
    const View k = rows_of_head(args_.k, batch, of_keys, 0, keys);
    const View v = rows_of_head(args_.v, batch, of_keys, 0, keys);
    const View k_copy = matrix(keys_.as<void>(), k.dtype, keys, k.size(1));
    const View v_copy = matrix(values_.as<void>(), v.dtype, v.size(1), keys);
    run_first(kernels_.copy, CopyArgs{.x = k, .y = k_copy}, stream_);
    run_first(kernels_.copy, CopyArgs{.x = transposed(v), .y = v_copy}, stream_);
    for (int64_t first = 0; first < args_.q.size(2); first += chunk_) {
      const int64_t rows = std::min(chunk_, args_.q.size(2) - first);
      attend_rows(rows_of_head(args_.q, batch, head, first, rows), k_copy, v_copy,
                  rows_of_head(args_.y, batch, head, first, rows));
    }
  }

 private:
  size_t bytes(int64_t elements) const {
    return static_cast<size_t>(elements * info(args_.q.dtype).block_bytes);
  }
  static size_t float_bytes(int64_t elements) {
    return static_cast<size_t>(elements) * sizeof(float);
  }
  void multiply(const View& x, const View& weight, const View& y) {
    const LinearPart part{.weight = weight, .bias = {}, .y = y};
    const LinearArgs args{.x = x, .parts = {&part, 1}, .may_round_to = weight.dtype};
    run_first(kernels_.linear, args, stream_);
  }
  void attend_rows(const View& q, const View& keys, const View& values, const View& y) {
    const int64_t rows = q.size(0);
    const auto floats = [&](const Scratch& memory, int64_t columns) {
      return matrix(memory.as<void>(), DType::f32, rows, columns);
    };
    const View queries = floats(queries_, q.size(1)), scores = floats(scores_, keys.size(0));
    const View weights = floats(weights_, keys.size(0)), result = floats(results_, values.size(0));
    run_first(kernels_.cast, CastArgs{.x = q, .y = queries}, stream_);
    multiply(queries, keys, scores);
    const AffineArgs scaling{.x = scores, .y = scores, .mul = static_cast<double>(args_.scale)};
    run_first(kernels_.affine, scaling, stream_);
    run_first(kernels_.softmax, SoftmaxArgs{.x = scores, .y = weights}, stream_);
    multiply(weights, values, result);
    run_first(kernels_.cast, CastArgs{.x = result, .y = y}, stream_);
  }

  const AttentionArgs& args_;
  Stream& stream_;
  const KernelTable& kernels_;
  int64_t chunk_;  // queries at a time
  Scratch keys_, values_, queries_, scores_, weights_, results_;
};

void run(const AttentionArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  WideHeads heads(args, stream);
  for (int64_t batch = 0; batch < args.q.size(0); ++batch) {
    for (int64_t head = 0; head < args.q.size(1); ++head) heads.attend(batch, head);
  }
}

}  // namespace

const Impl<AttentionArgs> attention_wide{"products", refuse, run};

}  // namespace rbee::gpu
