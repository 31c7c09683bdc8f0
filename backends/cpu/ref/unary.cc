#include "backends/cpu/ref/elementwise.h"
#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"
#include "backends/shared/scalar.h"

namespace rbee::cpu {
namespace {

// T is float or double.
template <typename T>
T apply(UnaryOp op, T x, T param) {
  switch (op) {
    case UnaryOp::abs:
      return std::fabs(x);
    case UnaryOp::ceil:
      return shared::ceil(x);
    case UnaryOp::cos:
      return shared::cos(x);
    case UnaryOp::elu:
      return shared::elu(x, param);
    case UnaryOp::erf:
      return shared::erf(x);
    case UnaryOp::exp:
      return shared::exp(x);
    case UnaryOp::floor:
      return shared::floor(x);
    case UnaryOp::gelu:
      return shared::gelu(x);
    case UnaryOp::gelu_erf:
      return shared::gelu_erf(x);
    case UnaryOp::log:
      return shared::log(x);
    case UnaryOp::neg:
      return -x;
    case UnaryOp::normcdf:
      return shared::normcdf(x);
    case UnaryOp::powf:
      return shared::pow(x, param);
    case UnaryOp::quick_gelu:
      return shared::quick_gelu(x);
    case UnaryOp::recip:
      return 1 / x;
    case UnaryOp::relu:
      return shared::relu(x);
    case UnaryOp::round:
      return shared::round_away(x);
    case UnaryOp::sigmoid:
      return shared::sigmoid(x);
    case UnaryOp::sign:
      return shared::sign(x);
    case UnaryOp::silu:
      return shared::silu(x);
    case UnaryOp::sin:
      return shared::sin(x);
    case UnaryOp::sqr:
      return x * x;
    case UnaryOp::sqrt:
      return shared::sqrt(x);
    case UnaryOp::tanh:
      return shared::tanh(x);
  }
  return x;
}

// Unsigned arithmetic keeps the low bits, which is modulo 2^bits.
template <typename T>
T apply_to_integer(UnaryOp op, T x) {
  const auto wide = static_cast<uint64_t>(x);
  switch (op) {
    case UnaryOp::abs:
      return static_cast<T>(x < 0 ? -wide : wide);
    case UnaryOp::neg:
      return static_cast<T>(-wide);
    case UnaryOp::relu:
      return x < 0 ? T{0} : x;
    case UnaryOp::sign:
      return static_cast<T>((x > 0) - (x < 0));
    case UnaryOp::sqr:
      return static_cast<T>(wide * wide);
    default:
      fail(Code::unsupported, "unary", "function number ", static_cast<int>(op),
           " has no integer form");
  }
}

template <typename T>
void unary_loop(const UnaryArgs& args) {
  const T* x = args.x.as<const T>();
  T* y = args.y.as<T>();
  const auto one = [&](int64_t at_y, int64_t at_x) {
    if constexpr (std::is_integral_v<T>) {
      y[at_y] = apply_to_integer(args.op, x[at_x]);
    } else {
      y[at_y] = store<T>(apply(args.op, load(x[at_x]), static_cast<Compute<T>>(args.param)));
    }
  };
  for_each(one, args.y, args.x);
}

void run_unary(const UnaryArgs& args, Stream&) {
  dispatch_numbers("unary", args.x.dtype, [&]<typename T>() { unary_loop<T>(args); });
}

template <typename T>
void affine_loop(const AffineArgs& args) {
  using C = std::conditional_t<std::is_integral_v<T>, double, Compute<T>>;
  const T* x = args.x.as<const T>();
  T* y = args.y.as<T>();
  const C mul = static_cast<C>(args.mul), add = static_cast<C>(args.add);
  const auto one = [&](int64_t at_y, int64_t at_x) {
    y[at_y] = store<T>(static_cast<C>(load(x[at_x])) * mul + add);
  };
  for_each(one, args.y, args.x);
}

void run_affine(const AffineArgs& args, Stream&) {
  dispatch_numbers("affine", args.x.dtype, [&]<typename T>() { affine_loop<T>(args); });
}

}  // namespace

const Impl<UnaryArgs> ref_unary = {"ref", never_refuse<UnaryArgs>, run_unary};
const Impl<AffineArgs> ref_affine = {"ref", never_refuse<AffineArgs>, run_affine};

}  // namespace rbee::cpu
