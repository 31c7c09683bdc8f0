#pragma once
// Points of the code books of IQ1, IQ2 and IQ3: the nearest ones to given digits.

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "backends/shared/code_book_blocks.h"
#include "rbee/quant/codes.h"

namespace rbee::quant {

// What a type's points mean. kWidth: elements of a point; kDigits: values of a digit, from digit
// 0's kFirst in about equal steps to kLast; kUnit: of an element's value over d times the odd
// integer of its scale, of at most kTopScale; kNear: points to consider.
template <class Block>
struct PointTraits;

template <int kWidth_, int kDigits_, int kFirst_, int kLast_>
struct PointShape {
  static constexpr int kWidth = kWidth_;
  static constexpr int kDigits = kDigits_;
  static constexpr float kFirst = kFirst_;
  static constexpr float kLast = kLast_;
};

struct Iq2Shape : PointShape<8, 3, 8, 43> {
  static constexpr float kUnit = 0.125f;
  static constexpr float kTopScale = 31;
  static int value(int digit) { return shared::iq2_value(digit); }
};
// The eighth of the elements of IQ1 comes on top.
struct Iq1Shape : PointShape<8, 3, -8, 8> {
  static constexpr float kUnit = 0.125f;
  static constexpr float kTopScale = 15;
  static int value(int digit) { return 8 * (digit - 1); }
};

template <>
struct PointTraits<shared::BlockIQ2_XXS> : Iq2Shape {
  static constexpr int kNear = 16;
};
template <>
struct PointTraits<shared::BlockIQ2_XS> : Iq2Shape {
  static constexpr int kNear = 16;
};
template <>
struct PointTraits<shared::BlockIQ2_S> : Iq2Shape {
  static constexpr int kNear = 10;
};
template <>
struct PointTraits<shared::BlockIQ1_S> : Iq1Shape {
  static constexpr int kNear = 6;
};
template <>
struct PointTraits<shared::BlockIQ1_M> : PointTraits<shared::BlockIQ1_S> {};
template <>
struct PointTraits<shared::BlockIQ3_XXS> : PointShape<4, 8, 4, 62> {
  static constexpr float kUnit = 0.25f;
  static constexpr float kTopScale = 31;
  static constexpr int kNear = 8;
  static int value(int digit) { return shared::iq3_xxs_value(digit); }
};
template <>
struct PointTraits<shared::BlockIQ3_S> : PointShape<4, 8, 1, 15> {
  static constexpr float kUnit = 1;
  static constexpr float kTopScale = 31;
  static constexpr int kNear = 8;
  static int value(int digit) { return shared::iq3_s_value(digit); }
};

// The points of a type's book as values, and for each combination of digits those nearest to it, in
// order of distance. Made at the first use.
template <class Block>
class Points {
 public:
  using Traits = PointTraits<Block>;
  static constexpr int kWidth = Traits::kWidth;
  static constexpr int kCount = shared::BookOf<Block>::kPoints;
  static constexpr int kNear = Traits::kNear;

  static const Points& instance() {
    static const Points points;
    return points;
  }

  const float* values(int point) const { return values_[static_cast<size_t>(point)].data(); }
  // kNear points for kWidth values in units of the scale.
  const uint16_t* near(const Lanes* t) const {
    constexpr float kStep = (Traits::kLast - Traits::kFirst) / (Traits::kDigits - 1);
    int key = 0;
    for (int part = 0; part < kWidth / kLanes; ++part) {
      const Lanes digits =
          bounded((t[part] - splat(Traits::kFirst)) * splat(1 / kStep), 0, Traits::kDigits - 1) +
          splat(0.5f);
      for (int lane = 0; lane < kLanes; ++lane) {
        key = key * Traits::kDigits + static_cast<int>(digits[lane]);
      }
    }
    return near_[static_cast<size_t>(key)].data();
  }

 private:
  static constexpr size_t kKeys = [] {
    size_t keys = 1;
    for (int i = 0; i < kWidth; ++i) keys *= Traits::kDigits;
    return keys;
  }();

  Points() : values_(kCount), near_(kKeys) {
    for (int point = 0; point < kCount; ++point) {
      const uint32_t word = shared::BookOf<Block>::words()[point];
      for (int i = 0; i < kWidth; ++i) {
        const int digit = kWidth == 8 ? shared::digit_of_8(word, i) : shared::digit_of_4(word, i);
        values_[static_cast<size_t>(point)][static_cast<size_t>(i)] =
            static_cast<float>(Traits::value(digit));
      }
    }
    for (size_t key = 0; key < kKeys; ++key) find_near(key);
  }

  void find_near(size_t key) {
    std::array<float, kWidth> at;
    for (size_t i = kWidth, rest = key; i-- > 0; rest /= Traits::kDigits) {
      at[i] = static_cast<float>(Traits::value(static_cast<int>(rest % Traits::kDigits)));
    }
    std::array<uint32_t, kCount> order;  // the distance, then the point
    for (size_t point = 0; point < kCount; ++point) {
      float distance = 0;
      for (size_t i = 0; i < kWidth; ++i) {
        const float apart = values_[point][i] - at[i];
        distance += apart * apart;
      }
      order[point] = (static_cast<uint32_t>(distance) << 11) | static_cast<uint32_t>(point);
    }
    std::partial_sort(order.begin(), order.begin() + kNear, order.end());
    for (size_t i = 0; i < kNear; ++i) near_[key][i] = order[i] & 2047u;
  }

  std::vector<std::array<float, kWidth>> values_;
  std::vector<std::array<uint16_t, kNear>> near_;
};

}  // namespace rbee::quant
