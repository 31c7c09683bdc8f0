#include "tests/support/random_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backends/shared/quant_blocks.h"
#include "rbee/core/error.h"

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

// Calls body.operator()<T>() with the storage type of a plain dtype.
template <typename Body>
auto with_type(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::u8:
      return body.template operator()<uint8_t>();
    case DType::u32:
      return body.template operator()<uint32_t>();
    case DType::i16:
      return body.template operator()<int16_t>();
    case DType::i32:
      return body.template operator()<int32_t>();
    case DType::i64:
      return body.template operator()<int64_t>();
    case DType::f16:
      return body.template operator()<f16>();
    case DType::bf16:
      return body.template operator()<bf16>();
    case DType::f64:
      return body.template operator()<double>();
    case DType::f8e4m3:
      return body.template operator()<f8e4m3>();
    default:
      return body.template operator()<float>();
  }
}

double uniform(uint64_t& state) {
  return static_cast<double>(next_random(state) >> 11) * 0x1p-53;
}

template <typename T>
void fill_plain(std::byte* out, int64_t count, const Values& values, uint64_t& state) {
  for (int64_t i = 0; i < count; ++i) {
    double x = values.low + (values.high - values.low) * uniform(state);
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

uint16_t random_scale(uint64_t& state) {
  return to_f16(static_cast<float>(0.01 + 0.09 * uniform(state))).bits;
}

// Random bytes are valid codes of every format; scales need care.
template <typename Block>
void fix_scales(Block& block, uint64_t& state) {
  if constexpr (std::is_same_v<Block, shared::BlockMXFP4>) {
    block.e = static_cast<uint8_t>(122 + next_random(state) % 4);
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

template <typename Body>
auto with_block(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::q4_0:
      return body.template operator()<shared::BlockQ4_0>();
    case DType::q4_1:
      return body.template operator()<shared::BlockQ4_1>();
    case DType::q5_0:
      return body.template operator()<shared::BlockQ5_0>();
    case DType::q5_1:
      return body.template operator()<shared::BlockQ5_1>();
    case DType::q8_0:
      return body.template operator()<shared::BlockQ8_0>();
    case DType::q2_k:
      return body.template operator()<shared::BlockQ2_K>();
    case DType::q3_k:
      return body.template operator()<shared::BlockQ3_K>();
    case DType::q4_k:
      return body.template operator()<shared::BlockQ4_K>();
    case DType::q5_k:
      return body.template operator()<shared::BlockQ5_K>();
    case DType::q6_k:
      return body.template operator()<shared::BlockQ6_K>();
    case DType::q8_k:
      return body.template operator()<shared::BlockQ8_K>();
    case DType::iq4_nl:
      return body.template operator()<shared::BlockIQ4_NL>();
    case DType::iq4_xs:
      return body.template operator()<shared::BlockIQ4_XS>();
    default:
      return body.template operator()<shared::BlockMXFP4>();
  }
}

void fill_blocks(std::span<std::byte> bytes, DType dtype, uint64_t& state) {
  for (std::byte& b : bytes) b = static_cast<std::byte>(next_random(state));
  with_block(dtype, [&]<typename Block>() {
    for (size_t at = 0; at + sizeof(Block) <= bytes.size(); at += sizeof(Block)) {
      Block block;
      std::memcpy(&block, bytes.data() + at, sizeof block);
      fix_scales(block, state);
      std::memcpy(bytes.data() + at, &block, sizeof block);
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
  if (is_quantized(dtype)) return fill_blocks(bytes, dtype, state);
  with_type(dtype, [&]<typename T>() {
    const auto count = static_cast<int64_t>(bytes.size() / sizeof(T));
    fill_plain<T>(bytes.data(), count, values, state);
    if (values.specials) put_specials<T>(bytes.data(), count);
  });
}

double element(const std::byte* data, DType dtype, int64_t i) {
  if (is_quantized(dtype)) {
    return with_block(dtype, [&]<typename Block>() -> double {
      Block block;
      std::memcpy(&block, data + i / Block::kElements * static_cast<int64_t>(sizeof block),
                  sizeof block);
      return shared::dequantize(block, static_cast<int>(i % Block::kElements));
    });
  }
  return with_type(dtype, [&]<typename T>() -> double {
    T x;
    std::memcpy(&x, data + i * static_cast<int64_t>(sizeof x), sizeof x);
    if constexpr (kIsSmall<T>) {
      return to_float(x);
    } else {
      return static_cast<double>(x);
    }
  });
}

}  // namespace rbee::harness
