#include "backends/cpu/ref/elementwise.h"
#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"

namespace rbee::cpu {
namespace {

template <typename T>
T smaller(T a, T b) {
  return a < b || a != a ? a : b;
}

template <typename T>
T larger(T a, T b) {
  return a > b || a != a ? a : b;
}

// Truncates; by zero gives 0, and the one quotient that overflows wraps around.
template <typename T>
T divide_integers(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(-static_cast<uint64_t>(a));
  }
  return static_cast<T>(a / b);
}

template <typename T>
T apply_to_integers(BinaryOp op, T a, T b) {
  const auto wide_a = static_cast<uint64_t>(a), wide_b = static_cast<uint64_t>(b);
  switch (op) {
    case BinaryOp::add:
      return static_cast<T>(wide_a + wide_b);
    case BinaryOp::sub:
      return static_cast<T>(wide_a - wide_b);
    case BinaryOp::mul:
      return static_cast<T>(wide_a * wide_b);
    case BinaryOp::div:
      return divide_integers(a, b);
    case BinaryOp::minimum:
      return smaller(a, b);
    case BinaryOp::maximum:
      return larger(a, b);
  }
  return a;
}

template <typename T>
T apply(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::add:
      return a + b;
    case BinaryOp::sub:
      return a - b;
    case BinaryOp::mul:
      return a * b;
    case BinaryOp::div:
      return a / b;
    case BinaryOp::minimum:
      return smaller(a, b);
    case BinaryOp::maximum:
      return larger(a, b);
  }
  return a;
}

template <typename T>
void binary_loop(const BinaryArgs& args) {
  const T *a = args.a.as<const T>(), *b = args.b.as<const T>();
  T* y = args.y.as<T>();
  const auto one = [&](int64_t at_y, int64_t at_a, int64_t at_b) {
    if constexpr (std::is_integral_v<T>) {
      y[at_y] = apply_to_integers(args.op, a[at_a], b[at_b]);
    } else {
      y[at_y] = store<T>(apply(args.op, load(a[at_a]), load(b[at_b])));
    }
  };
  for_each(one, args.y, args.a, args.b);
}

void run_binary(const BinaryArgs& args, Stream&) {
  dispatch_numbers("binary", args.y.dtype, [&]<typename T>() { binary_loop<T>(args); });
}

template <typename T>
bool holds(CompareOp op, T a, T b) {
  switch (op) {
    case CompareOp::eq:
      return a == b;
    case CompareOp::ne:
      return a != b;
    case CompareOp::lt:
      return a < b;
    case CompareOp::le:
      return a <= b;
    case CompareOp::gt:
      return a > b;
    case CompareOp::ge:
      return a >= b;
  }
  return false;
}

template <typename T>
void compare_loop(const CompareArgs& args) {
  const T *a = args.a.as<const T>(), *b = args.b.as<const T>();
  uint8_t* y = args.y.as<uint8_t>();
  const auto one = [&](int64_t at_y, int64_t at_a, int64_t at_b) {
    y[at_y] = holds(args.op, load(a[at_a]), load(b[at_b]));
  };
  for_each(one, args.y, args.a, args.b);
}

void run_compare(const CompareArgs& args, Stream&) {
  dispatch_numbers("compare", args.a.dtype, [&]<typename T>() { compare_loop<T>(args); });
}

// Bits say whether an integer is 0, whatever its sign.
template <typename Cond, typename T>
void where_loop(const WhereArgs& args) {
  const Cond* cond = args.cond.as<const Cond>();
  const T *a = args.a.as<const T>(), *b = args.b.as<const T>();
  T* y = args.y.as<T>();
  const auto one = [&](int64_t at_y, int64_t at_cond, int64_t at_a, int64_t at_b) {
    y[at_y] = cond[at_cond] != 0 ? a[at_a] : b[at_b];
  };
  for_each(one, args.y, args.cond, args.a, args.b);
}

void run_where(const WhereArgs& args, Stream&) {
  dispatch_sizes("where", args.cond.dtype, [&]<typename Cond>() {
    dispatch_sizes("where", args.y.dtype, [&]<typename T>() { where_loop<Cond, T>(args); });
  });
}

}  // namespace

const Impl<BinaryArgs> ref_binary = {"ref", never_refuse<BinaryArgs>, run_binary};
const Impl<CompareArgs> ref_compare = {"ref", never_refuse<CompareArgs>, run_compare};
const Impl<WhereArgs> ref_where = {"ref", never_refuse<WhereArgs>, run_where};

}  // namespace rbee::cpu
