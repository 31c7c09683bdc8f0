#pragma once
// Activations and arithmetic of f32. Include after a vec header.

#include "backends/api/args_elementwise.h"
#include "backends/api/impl.h"
#include "backends/cpu/merged_axes.h"
#include "backends/cpu/thread_pool.h"

namespace rbee::cpu {
namespace {

constexpr int64_t kPiece = 4096;  // elements of a row that one thread does at a time

template <UnaryOp kOp>
RB_INLINE Vec apply(Vec x) {
  if constexpr (kOp == UnaryOp::silu) {
    return x / (splat(1.0f) + exp(-x));
  } else if constexpr (kOp == UnaryOp::quick_gelu) {
    return x / (splat(1.0f) + exp(x * splat(-1.702f)));
  } else if constexpr (kOp == UnaryOp::gelu) {
    return gelu(x);
  } else if constexpr (kOp == UnaryOp::gelu_erf) {
    return x * normcdf(x);
  } else {
    return sigmoid(x);
  }
}

template <BinaryOp kOp>
RB_INLINE Vec apply(Vec a, Vec b) {
  if constexpr (kOp == BinaryOp::add) {
    return a + b;
  } else if constexpr (kOp == BinaryOp::sub) {
    return a - b;
  } else if constexpr (kOp == BinaryOp::mul) {
    return a * b;
  } else {
    return a / b;
  }
}

template <UnaryOp kOp>
RB_INLINE void unary_run(const float* x, float* y, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(y + i, apply<kOp>(load(x + i)));
  if (i == count) return;
  store_first(y + i, apply<kOp>(load_first(x + i, count - i)), count - i);
}

// An operand whose neighbours adjoin, or which is one value for the whole run (step 0).
RB_INLINE Vec operand(const float* from, int64_t i, int64_t step) {
  return step == 0 ? splat(*from) : load(from + i);
}
RB_INLINE Vec operand_first(const float* from, int64_t i, int64_t step, int64_t n) {
  return step == 0 ? splat(*from) : load_first(from + i, n);
}

template <BinaryOp kOp>
RB_INLINE void binary_run(const float* a, int64_t a_step, const float* b, int64_t b_step, float* y,
                          int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(y + i, apply<kOp>(operand(a, i, a_step), operand(b, i, b_step)));
  }
  if (i == count) return;
  const int64_t n = count - i;
  store_first(y + i, apply<kOp>(operand_first(a, i, a_step, n), operand_first(b, i, b_step, n)), n);
}

// Calls body(row, column, count) for pieces of rows, on all threads.
template <int kViews, typename Body>
RB_INLINE void for_pieces(const MergedAxes<kViews>& axes, Body&& body) {
  const int64_t columns = axes.columns();
  if (columns == 0) return;
  const int64_t pieces = (columns + kPiece - 1) / kPiece;
  const int64_t width = columns < kPiece ? columns : kPiece;
  ThreadPool::shared().parallel_for(
      axes.rows() * pieces, kPiece / width, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t column = i % pieces * kPiece;
          body(i / pieces, column, columns - column < kPiece ? columns - column : kPiece);
        }
      });
}

template <UnaryOp kOp>
void unary_all(const UnaryArgs& args) {
  const View* const views[] = {&args.y, &args.x};
  const MergedAxes<2> axes = merged_axes(views);
  const auto* x = static_cast<const float*>(args.x.data);
  auto* y = static_cast<float*>(args.y.data);
  for_pieces(axes, [&](int64_t row, int64_t column, int64_t count) {
    unary_run<kOp>(x + axes.row_offset(1, row) + column, y + axes.row_offset(0, row) + column,
                   count);
  });
}

template <BinaryOp kOp>
void binary_all(const BinaryArgs& args) {
  const View* const views[] = {&args.y, &args.a, &args.b};
  const MergedAxes<3> axes = merged_axes(views);
  const int64_t a_step = axes.column_step(1), b_step = axes.column_step(2);
  const auto *a = static_cast<const float*>(args.a.data),
             *b = static_cast<const float*>(args.b.data);
  auto* y = static_cast<float*>(args.y.data);
  for_pieces(axes, [&](int64_t row, int64_t column, int64_t count) {
    binary_run<kOp>(a + axes.row_offset(1, row) + column * a_step, a_step,
                    b + axes.row_offset(2, row) + column * b_step, b_step,
                    y + axes.row_offset(0, row) + column, count);
  });
}

const char* refuse_unary(const UnaryArgs& args) {
  if (args.x.dtype != DType::f32) return "takes f32";
  switch (args.op) {
    case UnaryOp::silu:
    case UnaryOp::quick_gelu:
    case UnaryOp::gelu:
    case UnaryOp::gelu_erf:
    case UnaryOp::sigmoid:
      break;
    default:
      return "has the activations of models only";
  }
  const View* const views[] = {&args.y, &args.x};
  const MergedAxes<2> axes = merged_axes(views);
  const bool runs = axes.columns() == 1 || (axes.column_step(0) == 1 && axes.column_step(1) == 1);
  return runs ? nullptr : "takes neighbours that adjoin";
}

void run_unary(const UnaryArgs& args, Stream&) {
  switch (args.op) {
    case UnaryOp::silu:
      return unary_all<UnaryOp::silu>(args);
    case UnaryOp::quick_gelu:
      return unary_all<UnaryOp::quick_gelu>(args);
    case UnaryOp::gelu:
      return unary_all<UnaryOp::gelu>(args);
    case UnaryOp::gelu_erf:
      return unary_all<UnaryOp::gelu_erf>(args);
    default:
      return unary_all<UnaryOp::sigmoid>(args);
  }
}

const char* refuse_binary(const BinaryArgs& args) {
  if (args.y.dtype != DType::f32) return "takes f32";
  if (args.op == BinaryOp::minimum || args.op == BinaryOp::maximum) return "has + - * / only";
  const View* const views[] = {&args.y, &args.a, &args.b};
  const MergedAxes<3> axes = merged_axes(views);
  if (axes.columns() > 1 && axes.column_step(0) != 1) return "writes neighbours that adjoin";
  for (int view = 1; view < 3; ++view) {
    const int64_t step = axes.column_step(view);
    if (axes.columns() > 1 && step != 0 && step != 1) return "takes neighbours that adjoin";
  }
  return nullptr;
}

void run_binary(const BinaryArgs& args, Stream&) {
  switch (args.op) {
    case BinaryOp::add:
      return binary_all<BinaryOp::add>(args);
    case BinaryOp::sub:
      return binary_all<BinaryOp::sub>(args);
    case BinaryOp::mul:
      return binary_all<BinaryOp::mul>(args);
    default:
      return binary_all<BinaryOp::div>(args);
  }
}

}  // namespace
}  // namespace rbee::cpu
