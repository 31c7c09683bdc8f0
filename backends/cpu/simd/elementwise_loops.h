#pragma once
// Activations, arithmetic and conversions. Include after a vec header.

#include "backends/api/args_elementwise.h"
#include "backends/api/impl.h"
#include "backends/cpu/merged_axes.h"
#include "backends/cpu/simd/storage.h"
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

template <UnaryOp kOp, typename T>
RB_INLINE void unary_run(const T* x, T* y, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(y + i, apply<kOp>(load(x + i)));
  if (i == count) return;
  store_first(y + i, apply<kOp>(load_first(x + i, count - i)), count - i);
}

// An operand with adjacent elements, or with one value for the whole run (step 0).
template <typename T>
RB_INLINE Vec operand(const T* from, int64_t i, int64_t step) {
  return step == 0 ? splat(load1(from)) : load(from + i);
}
template <typename T>
RB_INLINE Vec operand_first(const T* from, int64_t i, int64_t step, int64_t n) {
  return step == 0 ? splat(load1(from)) : load_first(from + i, n);
}

template <BinaryOp kOp, typename T>
RB_INLINE void binary_run(const T* a, int64_t a_step, const T* b, int64_t b_step, T* y,
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

template <UnaryOp kOp, typename T>
void unary_rows(const UnaryArgs& args) {
  const View* const views[] = {&args.y, &args.x};
  const MergedAxes<2> axes = merged_axes(views);
  const auto* x = static_cast<const T*>(args.x.data);
  auto* y = static_cast<T*>(args.y.data);
  for_pieces(axes, [&](int64_t row, int64_t column, int64_t count) {
    unary_run<kOp, T>(x + axes.row_offset(1, row) + column, y + axes.row_offset(0, row) + column,
                      count);
  });
}

template <BinaryOp kOp, typename T>
void binary_rows(const BinaryArgs& args) {
  const View* const views[] = {&args.y, &args.a, &args.b};
  const MergedAxes<3> axes = merged_axes(views);
  const int64_t a_step = axes.column_step(1), b_step = axes.column_step(2);
  const auto *a = static_cast<const T*>(args.a.data), *b = static_cast<const T*>(args.b.data);
  auto* y = static_cast<T*>(args.y.data);
  for_pieces(axes, [&](int64_t row, int64_t column, int64_t count) {
    binary_run<kOp, T>(a + axes.row_offset(1, row) + column * a_step, a_step,
                       b + axes.row_offset(2, row) + column * b_step, b_step,
                       y + axes.row_offset(0, row) + column, count);
  });
}

const char* refuse_unary(const UnaryArgs& args) {
  if (!is_storage(args.x.dtype)) return "takes f32, f16 and bf16";
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

template <typename T>
void unary_all(const UnaryArgs& args) {
  switch (args.op) {
    case UnaryOp::silu:
      return unary_rows<UnaryOp::silu, T>(args);
    case UnaryOp::quick_gelu:
      return unary_rows<UnaryOp::quick_gelu, T>(args);
    case UnaryOp::gelu:
      return unary_rows<UnaryOp::gelu, T>(args);
    case UnaryOp::gelu_erf:
      return unary_rows<UnaryOp::gelu_erf, T>(args);
    default:
      return unary_rows<UnaryOp::sigmoid, T>(args);
  }
}

void run_unary(const UnaryArgs& args, Stream&) {
  with_storage(args.x.dtype, [&]<typename T>() { unary_all<T>(args); });
}

const char* refuse_binary(const BinaryArgs& args) {
  if (!is_storage(args.y.dtype)) return "takes f32, f16 and bf16";
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

template <typename T>
void binary_all(const BinaryArgs& args) {
  switch (args.op) {
    case BinaryOp::add:
      return binary_rows<BinaryOp::add, T>(args);
    case BinaryOp::sub:
      return binary_rows<BinaryOp::sub, T>(args);
    case BinaryOp::mul:
      return binary_rows<BinaryOp::mul, T>(args);
    default:
      return binary_rows<BinaryOp::div, T>(args);
  }
}

void run_binary(const BinaryArgs& args, Stream&) {
  with_storage(args.y.dtype, [&]<typename T>() { binary_all<T>(args); });
}

const char* refuse_cast(const CastArgs& args) {
  if (!is_storage(args.x.dtype) || !is_storage(args.y.dtype)) return "takes f32, f16 and bf16";
  const View* const views[] = {&args.y, &args.x};
  const MergedAxes<2> axes = merged_axes(views);
  const bool runs = axes.columns() == 1 || (axes.column_step(0) == 1 && axes.column_step(1) == 1);
  return runs ? nullptr : "takes neighbours that adjoin";
}

template <typename From, typename To>
RB_INLINE void cast_run(const From* x, To* y, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(y + i, load(x + i));
  if (i < count) store_first(y + i, load_first(x + i, count - i), count - i);
}

template <typename From, typename To>
void cast_rows(const CastArgs& args) {
  const View* const views[] = {&args.y, &args.x};
  const MergedAxes<2> axes = merged_axes(views);
  const auto* x = static_cast<const From*>(args.x.data);
  auto* y = static_cast<To*>(args.y.data);
  for_pieces(axes, [&](int64_t row, int64_t column, int64_t count) {
    cast_run(x + axes.row_offset(1, row) + column, y + axes.row_offset(0, row) + column, count);
  });
}

void run_cast(const CastArgs& args, Stream&) {
  with_storage(args.x.dtype, [&]<typename From>() {
    with_storage(args.y.dtype, [&]<typename To>() { cast_rows<From, To>(args); });
  });
}

}  // namespace
}  // namespace rbee::cpu
