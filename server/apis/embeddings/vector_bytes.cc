#include "server/apis/embeddings/vector_bytes.h"

#include <openssl/evp.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "rbee/core/half.h"

namespace rbee::server {
namespace {

// OCP FP8 E5M2: the upper byte of a binary16, whose largest value is 57344.
uint8_t f8e5m2_of(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (bits >> 24) & 0x80u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint8_t>(sign | 0x7fu);
  if (magnitude >= 0x47700000u) return static_cast<uint8_t>(sign | 0x7cu);  // 61440 and above
  if (magnitude < 0x38800000u) {  // below 2^-14: the mantissa counts units of 2^-16
    const float aligned = std::bit_cast<float>(magnitude) + 0x1p7f;
    return static_cast<uint8_t>(sign | (std::bit_cast<uint32_t>(aligned) - 0x43000000u));
  }
  const uint32_t odd = (magnitude >> 21) & 1u;
  return static_cast<uint8_t>(sign | ((magnitude - 0x38000000u + 0xfffffu + odd) >> 21));
}

uint32_t bits_of(float x, VectorType type) {
  switch (type) {
    case VectorType::f16:
      return to_f16(x).bits;
    case VectorType::bf16:
      return to_bf16(x).bits;
    case VectorType::f8e4m3:
      return to_f8e4m3(x).bits;
    case VectorType::f8e5m2:
      return f8e5m2_of(x);
    case VectorType::f32:
      break;
  }
  return std::bit_cast<uint32_t>(x);
}

}  // namespace

size_t size_of(VectorType type) {
  switch (type) {
    case VectorType::f32:
      return 4;
    case VectorType::f16:
    case VectorType::bf16:
      return 2;
    case VectorType::f8e4m3:
    case VectorType::f8e5m2:
      break;
  }
  return 1;
}

std::string vector_bytes(std::span<const float> vector, const VectorEncoding& encoding) {
  const size_t size = size_of(encoding.type);
  std::string out;
  out.reserve(vector.size() * size);
  for (const float x : vector) {
    const uint32_t bits = bits_of(x, encoding.type);
    for (size_t i = 0; i < size; ++i) {
      const size_t byte = encoding.big_endian ? size - 1 - i : i;
      out.push_back(static_cast<char>(bits >> (8 * byte) & 0xff));
    }
  }
  return out;
}

std::string to_base64(std::string_view bytes) {
  std::vector<unsigned char> text((bytes.size() + 2) / 3 * 4 + 1);
  const int length =
      EVP_EncodeBlock(text.data(), reinterpret_cast<const unsigned char*>(bytes.data()),
                      static_cast<int>(bytes.size()));
  return {text.begin(), text.begin() + length};
}

std::vector<uint8_t> sign_bits(std::span<const float> vector) {
  std::vector<uint8_t> out((vector.size() + 7) / 8);
  for (size_t i = 0; i < vector.size(); ++i) {
    if (vector[i] >= 0) out[i / 8] |= static_cast<uint8_t>(128 >> i % 8);
  }
  return out;
}

std::vector<int8_t> scaled_bytes(std::span<const float> vector) {
  float most = 0;
  for (const float x : vector) most = std::max(most, std::fabs(x));
  const float scale = most > 0 ? 127 / most : 0;
  std::vector<int8_t> out;
  out.reserve(vector.size());
  for (const float x : vector) out.push_back(static_cast<int8_t>(std::lround(x * scale)));
  return out;
}

}  // namespace rbee::server
