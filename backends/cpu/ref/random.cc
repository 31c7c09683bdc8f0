#include "backends/cpu/ref/random.h"

#include <cmath>

#include "backends/cpu/ref/number.h"
#include "backends/shared/philox.h"

namespace rbee::cpu {
namespace {

using shared::PhiloxWords;

constexpr double kTau = 6.283185307179586476925;  // 2 pi

// Bits of a mantissa, the leading one included: a number in [0, 1) of so many bits is exact.
template <typename T>
constexpr int mantissa_bits() {
  if constexpr (std::is_same_v<T, f16>) return 11;
  if constexpr (std::is_same_v<T, bf16>) return 8;
  if constexpr (std::is_same_v<T, f8e4m3>) return 4;
  return std::numeric_limits<T>::digits;
}

// The top `bits` of r0 and r1, as a fraction of [0, 1).
double fraction(const PhiloxWords& r, int bits) {
  const uint64_t all = static_cast<uint64_t>(r.words[0]) << 32 | r.words[1];
  return std::ldexp(static_cast<double>(all >> (64 - bits)), -bits);
}

template <typename T>
T uniform(const RandomArgs& args, const PhiloxWords& r) {
  const double value = args.a + (args.b - args.a) * fraction(r, mantissa_bits<T>());
  const T rounded = store<T>(value);
  return load(rounded) < args.b ? rounded : store<T>(args.a);
}

template <typename T>
T normal(const RandomArgs& args, const PhiloxWords& r) {
  const double u = std::ldexp(static_cast<double>((r.words[0] >> 8) + 1), -24);
  const double angle = kTau * std::ldexp(static_cast<double>(r.words[1] >> 8), -24);
  return store<T>(args.a + args.b * std::sqrt(-2 * std::log(u)) * std::cos(angle));
}

void random(const RandomArgs& args, Stream&) {
  const int64_t count = args.y.numel();
  dispatch_floats("random", args.y.dtype, [&]<typename T>() {
    T* y = args.y.as<T>();
    for (int64_t i = 0; i < count; ++i) {
      const PhiloxWords r =
          shared::philox_element(args.seed, args.offset + static_cast<uint64_t>(i));
      y[i] = args.kind == RandomKind::uniform ? uniform<T>(args, r) : normal<T>(args, r);
    }
  });
}

}  // namespace

const Impl<RandomArgs> ref_random = {"ref", never_refuse, random};

}  // namespace rbee::cpu
