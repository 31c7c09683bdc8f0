#include "tests/support/random_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backends/api/dispatch.h"
#include "backends/api/dispatch_blocks.h"

namespace rbee::harness {
namespace {

template <typename T>
inline constexpr bool kIsSmall =
    std::is_same_v<T, f16> || std::is_same_v<T, bf16> || std::is_same_v<T, f8e4m3>;

template <typename T>
T convert(double x) {
  if constexpr (std::is_same_v<T, f16>) {
    return to_f16(static_cast<float>(x));
  } else if constexpr (std::is_same_v<T, bf16>) {
    return to_bf16(static_cast<float>(x));
  } else if constexpr (std::is_same_v<T, f8e4m3>) {
    return to_f8e4m3(static_cast<float>(x));
  } else {
    return static_cast<T>(x);
  }
}

template <typename Body>
void with_type(DType dtype, Body&& body) {
  dispatch<uint8_t, uint32_t, int16_t, int32_t, int64_t, f16, bf16, float, double, f8e4m3>(
      "random_values", dtype, body);
}

double uniform(uint64_t& state) {
  return static_cast<double>(next_random(state) >> 11) * 0x1p-53;
}

template <typename T>
void fill_plain(std::byte* out, int64_t count, const Values& values, uint64_t& state) {
  for (int64_t i = 0; i < count; ++i) {
    double x = values.low + (values.high - values.low + values.step) * uniform(state);
    if (values.step != 0) x = values.low + std::floor((x - values.low) / values.step) * values.step;
    if constexpr (std::is_integral_v<T>) {
      x = std::max(std::floor(x), static_cast<double>(std::numeric_limits<T>::min()));
    }
    const T stored = convert<T>(x);
    std::memcpy(out + i * static_cast<int64_t>(sizeof(T)), &stored, sizeof(T));
  }
}

template <typename T>
void put_specials(std::byte* out, int64_t count) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  T specials[9];
  if constexpr (std::is_integral_v<T>) {
    std::fill(std::begin(specials), std::end(specials), T{0});
    specials[0] = std::numeric_limits<T>::min();
    specials[1] = std::numeric_limits<T>::max();
  } else {
    const double largest = kIsSmall<T> ? 448 : 3.4e38;
    const double values[9] = {std::nan(""), kInf, -kInf, 0.0, -0.0, largest, -largest, 1e-40, -1};
    for (int i = 0; i < 9; ++i) specials[i] = convert<T>(values[i]);
  }
  std::memcpy(out, specials, sizeof(T) * static_cast<size_t>(std::min<int64_t>(count, 9)));
}

template <typename T>
void put_undefined(std::byte* out, const std::vector<int64_t>& at) {
  if constexpr (!std::is_integral_v<T>) {
    const T undefined = convert<T>(std::nan(""));
    for (const int64_t i : at) {
      std::memcpy(out + i * static_cast<int64_t>(sizeof(T)), &undefined, sizeof(T));
    }
  }
}

uint16_t random_scale(uint64_t& state) {
  return to_f16(static_cast<float>(0.01 + 0.09 * uniform(state))).bits;
}

// Random bytes are valid codes of every format but f8_g128; scales need care.
template <typename Block>
void fix_scales(Block& block, const Values& values, uint64_t& state) {
  if constexpr (std::is_same_v<Block, shared::BlockMXFP4>) {
    block.e = static_cast<uint8_t>(122 + next_random(state) % 4);
  } else if constexpr (std::is_same_v<Block, shared::BlockNVFP4>) {
    for (uint8_t& d : block.d) d = static_cast<uint8_t>(0x10 + next_random(state) % 24);
  } else if constexpr (std::is_same_v<Block, shared::BlockIQ1_M>) {
    const int d = random_scale(state);
    for (int i = 0; i < 4; ++i) {
      block.scales[i] = static_cast<uint16_t>((block.scales[i] & 0xfff) | (d >> 4 * i & 15) << 12);
    }
  } else if constexpr (std::is_same_v<Block, shared::BlockF8_G128>) {
    block.d = values.one_scale ? 0.002f : static_cast<float>(0.0005 + 0.0045 * uniform(state));
    for (uint8_t& code : block.qs) {
      if ((code & 127) == 127) code ^= 1;  // NaN; the group's scale would be NaN, too
    }
  } else if constexpr (std::is_same_v<Block, shared::BlockQ8_K>) {
    block.d = static_cast<float>(0.01 + 0.09 * uniform(state));
    for (int group = 0; group < 16; ++group) {
      int sum = 0;
      for (int i = 0; i < 16; ++i) sum += block.qs[16 * group + i];
      block.bsums[group] = static_cast<int16_t>(sum);
    }
  } else {
    block.d = random_scale(state);
    if constexpr (requires { block.m; }) block.m = random_scale(state);
    if constexpr (requires { block.dmin; }) block.dmin = random_scale(state);
  }
}

void fill_blocks(std::span<std::byte> bytes, DType dtype, const Values& values, uint64_t& state) {
  for (std::byte& b : bytes) b = static_cast<std::byte>(next_random(state));
  dispatch_blocks("fill_random", dtype, [&]<typename Block>() {
    for (size_t at = 0; at + sizeof(Block) <= bytes.size(); at += sizeof(Block)) {
      Block block;
      std::memcpy(&block, bytes.data() + at, sizeof block);
      fix_scales(block, values, state);
      std::memcpy(bytes.data() + at, &block, sizeof block);
    }
    if constexpr (std::is_same_v<Block, shared::BlockQ8_0>) {
      const uint16_t undefined = to_f16(std::nanf("")).bits;
      for (const int64_t i : values.undefined) {
        const auto at = static_cast<size_t>(i / Block::kElements) * sizeof(Block);
        std::memcpy(bytes.data() + at + offsetof(Block, d), &undefined, sizeof undefined);
      }
    }
  });
}

}  // namespace

uint64_t next_random(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void fill_random(std::span<std::byte> bytes, DType dtype, const Values& values, uint64_t& state) {
  if (is_quantized(dtype)) return fill_blocks(bytes, dtype, values, state);
  with_type(dtype, [&]<typename T>() {
    const auto count = static_cast<int64_t>(bytes.size() / sizeof(T));
    fill_plain<T>(bytes.data(), count, values, state);
    if (values.specials && count > 0) put_specials<T>(bytes.data(), count);
    put_undefined<T>(bytes.data(), values.undefined);
  });
}

// Tests the type once for all elements: a frame with a block of each type is large, and ASan
// poisons it at every call.
void elements(const std::byte* data, DType dtype, std::span<const int64_t> at,
              std::span<double> out) {
  RB_ASSERT(at.size() == out.size());
  if (is_quantized(dtype)) {
    dispatch_blocks("elements", dtype, [&]<typename Block>() {
      Block block;
      for (size_t k = 0; k < at.size(); ++k) {
        const int64_t number = at[k] / Block::kElements;
        std::memcpy(&block, data + number * static_cast<int64_t>(sizeof block), sizeof block);
        out[k] = shared::dequantize(block, static_cast<int>(at[k] % Block::kElements));
      }
    });
    return;
  }
  with_type(dtype, [&]<typename T>() {
    T x;
    for (size_t k = 0; k < at.size(); ++k) {
      std::memcpy(&x, data + at[k] * static_cast<int64_t>(sizeof x), sizeof x);
      if constexpr (kIsSmall<T>) {
        out[k] = to_float(x);
      } else {
        out[k] = static_cast<double>(x);
      }
    }
  });
}

}  // namespace rbee::harness
