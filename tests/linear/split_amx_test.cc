// How AMX multiplies f16 weights: processors with AVX-512 and VBMI split inputs and weights into
// parts. The test adds up the tiles' five products in double.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "backends/cpu/cpu_features.h"
#include "backends/cpu/linear/kernels.h"
#include "rbee/core/half.h"
#include "tests/support/random_values.h"

#ifdef __x86_64__

namespace rbee::cpu {
namespace {

constexpr int64_t kIn = 40, kPadded = 64;  // inputs, and what fills tiles of 32
constexpr float kInfinity = std::numeric_limits<float>::infinity();

double of_bf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

class SplitAmx : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* missing = missing_isa(Isa::avx512bf16)) GTEST_SKIP() << missing;
    if (!__builtin_cpu_supports("avx512vbmi")) GTEST_SKIP() << "needs AVX-512 VBMI";
    uint64_t state = 3;
    harness::fill_random(std::as_writable_bytes(std::span(x_)), DType::f32, {}, state);
    harness::fill_random(std::as_writable_bytes(std::span(weights_)), DType::f16, {}, state);
    at(7, 5) = 0x3c00;  // 1: its lower part is zero
  }

  // The weight of input k and output `out`, f16, as in a panel.
  uint16_t& at(int64_t k, int64_t out) {
    return weights_[static_cast<size_t>(k * kPanelRows + out)];
  }
  double weight(int64_t k, int64_t out) { return to_float(std::bit_cast<f16>(at(k, out))); }

  // x times the weights of `out`, in the parts that tiles multiply.
  double product(int64_t out) {
    std::vector<uint16_t> x(kSplitParts * kPadded), w(2 * kPadded * kPanelRows);
    linear_amx.split(x_, kIn, {x.data(), x.data() + kPadded, x.data() + 2 * kPadded});
    linear_amx.kernels[DType::f16]->unpack(reinterpret_cast<const std::byte*>(weights_), kIn,
                                           {.bf16 = w.data()});
    double sum = 0;
    for (int64_t k = 0; k < kPadded; ++k) {
      const auto part = [&](int64_t i) {
        return of_bf16(
            w[static_cast<size_t>((((k / 32 * 2 + i) * 16 + k % 32 / 2) * 16 + out) * 2 + k % 2)]);
      };
      for (int64_t i = 0; i < kSplitParts; ++i) {
        const double input = of_bf16(x[static_cast<size_t>(i * kPadded + k)]);
        sum += input * part(0);
        if (i < 2) sum += input * part(1);
      }
    }
    return sum;
  }

  float x_[kIn];
  uint16_t weights_[kIn * kPanelRows];
};

TEST_F(SplitAmx, PartsKeepEveryBit) {
  for (int64_t out = 0; out < kPanelRows; ++out) {
    double wanted = 0, size = 0;
    for (int64_t k = 0; k < kIn; ++k) {
      wanted += static_cast<double>(x_[k]) * weight(k, out);
      size += std::fabs(static_cast<double>(x_[k]) * weight(k, out));
    }
    EXPECT_NEAR(product(out), wanted, std::ldexp(size, -23)) << out;
  }
}

TEST_F(SplitAmx, InfiniteInputsStayInfinite) {
  for (const float x : {kInfinity, -kInfinity}) {
    for (const int64_t k : {int64_t{7}, kIn - 1}) {
      const float before = std::exchange(x_[k], x);
      for (int64_t out = 0; out < kPanelRows; ++out) {
        EXPECT_EQ(product(out), static_cast<double>(x) * weight(k, out)) << k << " " << out;
      }
      x_[k] = before;
    }
  }
  at(7, 5) = 0;
  x_[7] = kInfinity;
  EXPECT_TRUE(std::isnan(product(5)));
}

TEST_F(SplitAmx, NansStayNans) {
  x_[7] = std::bit_cast<float>(0x7f800001u);  // its payload is in the lower half only
  EXPECT_TRUE(std::isnan(product(5)));
  x_[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(product(5)));
}

}  // namespace
}  // namespace rbee::cpu

#endif
