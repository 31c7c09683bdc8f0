#pragma once
// Four floats at a time, and the sets of codes that a value can be rounded to.
//
// A set of codes has kLowest, kHighest, nearest(t): the code nearest to each of four values as a
// float, and for the search kStep and kSteps: how far, in codes, a scale is moved away from the one
// that meets the extreme value, and how often.

#include <cstring>

#include "backends/shared/quant_blocks.h"

namespace rbee::quant {

using Lanes = float __attribute__((vector_size(16)));
inline constexpr int kLanes = 4;

inline Lanes load(const float* x) {
  Lanes lanes;
  std::memcpy(&lanes, x, sizeof lanes);
  return lanes;
}
inline Lanes splat(float x) {
  return Lanes{x, x, x, x};
}
inline float sum(Lanes x) {
  return (x[0] + x[2]) + (x[1] + x[3]);
}

// The integers kLow to kHigh.
template <int kLow, int kHigh>
struct Integers {
  static constexpr float kLowest = kLow;
  static constexpr float kHighest = kHigh;
  static constexpr float kStep = 0.125f;
  static constexpr int kSteps = 8;

  static Lanes nearest(Lanes t) {
    const Lanes low = splat(kLowest);
    const Lanes high = splat(kHighest);
    const Lanes bounded = t < low ? low : (t > high ? high : t);
    const Lanes to_integer = splat(0x1.8p23f);  // adding it leaves no bits for a fraction
    return (bounded + to_integer) - to_integer;
  }
};

// The 16 values of the iq4 code book.
struct Iq4Codes {
  static constexpr float kLowest = -127.0f;
  static constexpr float kHighest = 113.0f;
  static constexpr float kStep = 1.5f;
  static constexpr int kSteps = 8;

  static Lanes nearest(Lanes t) {
    Lanes code = splat(kLowest);
    for (int i = 1; i < 16; ++i) {
      const auto value = static_cast<float>(shared::iq4_value(i));
      const auto below = static_cast<float>(shared::iq4_value(i - 1));
      code = t > splat((value + below) / 2) ? splat(value) : code;
    }
    return code;
  }
};

}  // namespace rbee::quant
