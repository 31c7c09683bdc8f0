#pragma once
// Formulas of one element, for T = float and, where there is a math library, double. NaN in gives
// NaN out unless a line says otherwise.

#include "backends/shared/math.h"

namespace rbee {
namespace shared {

template <class T>
RB_FN T sigmoid(T x) {
  // Both forms are 1 / (1 + e^-x); neither exponential overflows.
  if (x >= T(0)) return T(1) / (T(1) + exp(-x));
  const T e = exp(x);
  return e / (T(1) + e);
}

template <class T>
RB_FN T silu(T x) {
  return x * sigmoid(x);
}

// The normal distribution's cumulative function.
template <class T>
RB_FN T normcdf(T x) {
  return T(0.5) * erfc(x * T(-0.70710678118654752440));
}

// x * normcdf(x) (Hendrycks and Gimpel 2016)
template <class T>
RB_FN T gelu_erf(T x) {
  return x * normcdf(x);
}

// The same paper's approximation x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))); as a
// sigmoid of twice the argument, which does not cancel for negative x.
template <class T>
RB_FN T gelu(T x) {
  const T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
  return x * sigmoid(T(2) * inner);
}

// The same paper's other approximation, as the text encoders of CLIP have it.
template <class T>
RB_FN T quick_gelu(T x) {
  return x * sigmoid(T(1.702) * x);
}

template <class T>
RB_FN T relu(T x) {
  return x < T(0) ? T(0) : x;
}

// Clevert, Unterthiner and Hochreiter 2015
template <class T>
RB_FN T elu(T x, T alpha) {
  return x > T(0) ? x : alpha * expm1(x);
}

// -1, 0 or 1; NaN gives 0
template <class T>
RB_FN T sign(T x) {
  return static_cast<T>(x > T(0)) - static_cast<T>(x < T(0));
}

// The nearest whole number, halves away from zero.
template <class T>
RB_FN T round_away(T x) {
  const T a = x < T(0) ? -x : x;
  const T whole = floor(a);
  // a - whole is exact, so that 0.5 - 2^-25 stays below a half.
  const T rounded = a - whole >= T(0.5) ? whole + T(1) : whole;
  return x < T(0) ? -rounded : rounded;
}

}  // namespace shared
}  // namespace rbee
