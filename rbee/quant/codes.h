#pragma once
// Four floats at a time, and the sets of codes that a value can be rounded to.
//
// A set of codes has kLowest, kHighest; nearest(t): the code nearest to each of four values, as a
// float; stored(code): what put_quant takes for it; and for the search kStep and kSteps: how far,
// in codes, a scale is moved away from the one that meets the extreme value, and how often.

#include <array>
#include <cstdint>
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

inline Lanes bounded(Lanes x, float low, float high) {
  const Lanes above = x < splat(low) ? splat(low) : x;
  return above > splat(high) ? splat(high) : above;
}

// The integers kLow to kHigh.
template <int kLow, int kHigh>
struct Integers {
  static constexpr float kLowest = kLow;
  static constexpr float kHighest = kHigh;
  static constexpr float kStep = 0.125f + (kHigh - kLow) / 64.0f;
  static constexpr int kSteps = 5;

  static Lanes nearest(Lanes t) {
    const Lanes to_integer = splat(0x1.8p23f);  // adding it leaves no bits for a fraction
    return (bounded(t, kLowest, kHighest) + to_integer) - to_integer;
  }
  static int stored(float code) { return static_cast<int>(code); }
};

// For each of -127, -126.5, ... 113 the place of the nearest value in the iq4 code book. The points
// halfway between neighbours are multiples of 1/2, so this decides for all values.
inline constexpr auto kNearestIq4 = [] {
  std::array<uint8_t, 2 * (127 + 113) + 1> places{};
  for (int half = 0, place = 0; half < static_cast<int>(places.size()); ++half) {
    const int twice = half - 2 * 127;
    while (place < 15 && twice >= shared::iq4_value(place) + shared::iq4_value(place + 1)) ++place;
    places[static_cast<size_t>(half)] = static_cast<uint8_t>(place);
  }
  return places;
}();

// The 16 values of the iq4 code book.
struct Iq4Codes {
  static constexpr float kLowest = -127.0f;
  static constexpr float kHighest = 113.0f;
  static constexpr float kStep = 5.0f;
  static constexpr int kSteps = 5;
  static constexpr auto kValues = [] {
    std::array<float, kNearestIq4.size()> values{};
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(shared::iq4_value(kNearestIq4[i]));
    }
    return values;
  }();

  static Lanes nearest(Lanes t) {
    const Lanes halves = (bounded(t, kLowest, kHighest) + splat(127.0f)) * splat(2.0f);
    const auto at = [&](int lane) { return kValues[static_cast<size_t>(halves[lane])]; };
    return Lanes{at(0), at(1), at(2), at(3)};
  }
  static int stored(float code) { return kNearestIq4[static_cast<size_t>((code + 127) * 2)]; }
};

// For each of 0, 1/2, ... 12 the E2M1 code of the nearest doubled value. Points halfway between
// neighbours are multiples of 1/2 here too.
inline constexpr auto kNearestE2m1 = [] {
  std::array<uint8_t, 2 * 12 + 1> codes{};
  for (int half = 0, code = 0; half < static_cast<int>(codes.size()); ++half) {
    while (code < 7 && half >= shared::e2m1_doubled(code) + shared::e2m1_doubled(code + 1)) ++code;
    codes[static_cast<size_t>(half)] = static_cast<uint8_t>(code);
  }
  return codes;
}();

// Twice the values of E2M1.
struct E2m1Codes {
  static Lanes nearest(Lanes t) {
    const Lanes halves = bounded(t, -12, 12) * splat(2.0f);
    const auto at = [&](int lane) {
      const float half = halves[lane];
      const int code = kNearestE2m1[static_cast<size_t>(half < 0 ? -half : half)];
      return static_cast<float>(shared::e2m1_doubled(half < 0 ? code + 8 : code));
    };
    return Lanes{at(0), at(1), at(2), at(3)};
  }
  static int stored(float code) {
    const float magnitude = code < 0 ? -code : code;
    return kNearestE2m1[static_cast<size_t>(2 * magnitude)] + (code < 0 ? 8 : 0);
  }
};

}  // namespace rbee::quant
