#pragma once
// act(gate) * up over rows. Include after a vec header.

#include "backends/api/args_elementwise.h"
#include "backends/api/impl.h"
#include "backends/cpu/simd/storage.h"
#include "backends/cpu/thread_pool.h"

namespace rbee::cpu {
namespace {

constexpr int64_t kGatedGrain = 8192;  // elements that one thread does in about 2 us

template <GateOp kOp>
RB_INLINE Vec activate(Vec x) {
  if constexpr (kOp == GateOp::silu) {
    return x / (splat(1.0f) + exp(-x));
  } else if constexpr (kOp == GateOp::gelu) {
    return gelu(x);
  } else if constexpr (kOp == GateOp::gelu_erf) {
    return x * normcdf(x);
  } else if constexpr (kOp == GateOp::relu) {
    return max(splat(0.0f), x);  // of which NaN is the second
  } else {
    return sigmoid(x);
  }
}

template <GateOp kOp, typename T>
RB_INLINE void gate_row(const T* gate, const T* up, T* y, int64_t dim) {
  int64_t i = 0;
  for (; i + kLanes <= dim; i += kLanes) {
    store(y + i, activate<kOp>(load(gate + i)) * load(up + i));
  }
  if (i == dim) return;
  const int64_t rest = dim - i;
  store_first(y + i, activate<kOp>(load_first(gate + i, rest)) * load_first(up + i, rest), rest);
}

const char* refuse_gated(const GatedArgs& args) {
  for (const View* view : {&args.gate, &args.up, &args.y}) {
    if (!is_storage(view->dtype) || view->dtype != args.y.dtype) return "takes floats of one type";
    if (view->strides[1] != 1) return "takes rows without gaps";
  }
  return nullptr;
}

template <GateOp kOp, typename T>
void gate_rows(const GatedArgs& args) {
  const int64_t rows = args.y.sizes[0];
  const int64_t dim = args.y.sizes[1];
  // Rows are cut so that one long row of a decode step is shared out too.
  const int64_t width = dim < 1024 ? dim : 1024;
  const int64_t pieces = (dim + width - 1) / width;
  const auto at = [](const View& view, int64_t row, int64_t column) {
    return static_cast<T*>(view.data) + row * view.strides[0] + column;
  };
  ThreadPool::shared().parallel_for(
      rows * pieces, kGatedGrain / width + 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t row = i / pieces;
          const int64_t column = i % pieces * width;
          const int64_t count = dim - column < width ? dim - column : width;
          gate_row<kOp, T>(at(args.gate, row, column), at(args.up, row, column),
                           at(args.y, row, column), count);
        }
      });
}

template <typename T>
void gate_all(const GatedArgs& args) {
  switch (args.op) {
    case GateOp::silu:
      return gate_rows<GateOp::silu, T>(args);
    case GateOp::gelu:
      return gate_rows<GateOp::gelu, T>(args);
    case GateOp::gelu_erf:
      return gate_rows<GateOp::gelu_erf, T>(args);
    case GateOp::relu:
      return gate_rows<GateOp::relu, T>(args);
    default:
      return gate_rows<GateOp::sigmoid, T>(args);
  }
}

void run_gated(const GatedArgs& args, Stream&) {
  with_storage(args.y.dtype, [&]<typename T>() { gate_all<T>(args); });
}

}  // namespace
}  // namespace rbee::cpu
