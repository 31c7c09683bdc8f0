// Random numbers: see backends/api/args_random.h. One Philox call an element, so that values depend
// only on seed and offset. Its 20 wide products limit it.
#include "backends/gpu/tile.h"
#include "backends/shared/philox.h"
#include "backends/shared/random_params.h"

namespace rbee {
namespace gpu {

// Bits of a mantissa, the leading one included.
template <class T>
constexpr int kMantissa = 24;
template <>
constexpr int kMantissa<double> = 53;
template <>
constexpr int kMantissa<f16> = 11;
template <>
constexpr int kMantissa<bf16> = 8;
template <>
constexpr int kMantissa<f8e4m3> = 4;

// Rounds step by step in double, as the reference does: results are equal bit by bit.
template <class T>
RB_DEVICE T uniform(const RandomParams& p, const PhiloxWords& r) {
  constexpr int kBits = kMantissa<T>;
  const u64 all = static_cast<u64>(r.words[0]) << 32 | r.words[1];
  const double fraction = static_cast<double>(all >> (64 - kBits)) * f64::power_of_two(-kBits);
  const T rounded = convert<T>(p.a + rounded_product(p.b - p.a, fraction));
  return static_cast<double>(load_value(rounded)) < p.b ? rounded : convert<T>(p.a);
}

// cos(2 pi v), v in [0, 1): the quarter turn and the rest are exact.
RB_DEVICE float cos_of_turn(float v) {
  const float quarter = nearest(v * 4.0f);
  const float r = (v * 4.0f - quarter) * 1.57079633f;
  const int n = static_cast<int>(quarter) & 3;
  const float y = (n & 1) != 0 ? sin_kernel(r) : cos_kernel(r);
  return n == 1 || n == 2 ? -y : y;
}
RB_DEVICE double cos_of_turn(double v) {
  return cos(v * 6.283185307179586);
}

template <class T>
RB_DEVICE T normal(const RandomParams& p, const PhiloxWords& r) {
  using C = Compute<T>;
  const C unit = C(5.9604644775390625e-08);  // 2^-24
  const C u = static_cast<C>((r.words[0] >> 8) + 1) * unit;
  const C v = static_cast<C>(r.words[1] >> 8) * unit;
  const C value = sqrt(C(-2) * log(u)) * cos_of_turn(v);
  return store_value<T>(static_cast<C>(p.a) + static_cast<C>(p.b) * value);
}

template <class T, T (*kMake)(const RandomParams&, const PhiloxWords&)>
RB_DEVICE void random(const RandomParams& p) {
  T* y = static_cast<T*>(p.y);
  for (i64 i = grid_thread(); i < p.count; i += grid_threads()) {
    y[i] = kMake(p, philox_element(p.seed, p.offset + static_cast<u64>(i)));
  }
}

#define RB_RANDOM(dtype, T)                                                                 \
  RB_KERNEL(random_uniform_##dtype, kTileThreads, RandomParams, (random<T, uniform<T>>(p))) \
  RB_KERNEL(random_normal_##dtype, kTileThreads, RandomParams, (random<T, normal<T>>(p)))
RB_EACH_FLOAT_TYPE(RB_RANDOM)

}  // namespace gpu
}  // namespace rbee
