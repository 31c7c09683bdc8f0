#include "rbee/io/integer_matrix.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "rbee/core/error.h"
#include "rbee/core/half.h"

namespace rbee::io {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie");

using Order = IntegerMatrix::Order;

// AWQ: which of eight rows each nibble of a word holds, and the nibble of each row.
constexpr std::array<int64_t, 8> kAwqRow{0, 2, 4, 6, 1, 3, 5, 7};
constexpr std::array<int64_t, 8> kAwqNibble{0, 4, 1, 5, 2, 6, 3, 7};

uint32_t word_at(const std::byte* words, int64_t index) {
  uint32_t word;
  std::memcpy(&word, words + index * int64_t{sizeof word}, sizeof word);
  return word;
}

// Code `index` of a stream of codes without gaps; its words are `stride` words apart.
uint8_t code_at(const std::byte* words, int64_t stride, int64_t index, int bits) {
  const int64_t bit = index * bits, word = bit / 32;
  const auto shift = static_cast<int>(bit % 32);
  uint64_t both = word_at(words, word * stride);
  if (shift + bits > 32) both |= uint64_t{word_at(words, (word + 1) * stride)} << 32;
  return static_cast<uint8_t>((both >> shift) & ((uint64_t{1} << bits) - 1));
}

// Eight nibbles as eight bytes, the lowest first.
uint64_t spread(uint32_t word) {
  uint64_t out = word;
  out = (out | out << 16) & 0x0000ffff0000ffff;
  out = (out | out << 8) & 0x00ff00ff00ff00ff;
  return (out | out << 4) & 0x0f0f0f0f0f0f0f0f;
}

// Byte j of word i and byte i of word j change places.
void transpose(std::array<uint64_t, 8>& x) {
  constexpr std::array<uint64_t, 3> kMasks{0x00000000ffffffff, 0x0000ffff0000ffff,
                                           0x00ff00ff00ff00ff};
  for (size_t step = 4, level = 0; step > 0; step /= 2, ++level) {
    for (size_t i = 0; i < x.size(); ++i) {
      if ((i & step) != 0) continue;
      const uint64_t swapped = ((x[i] >> (8 * step)) ^ x[i + step]) & kMasks[level];
      x[i + step] ^= swapped;
      x[i] ^= swapped << (8 * step);
    }
  }
}

// Rows [first, first + count) of a matrix, and where their codes go.
struct Part {
  const IntegerMatrix& matrix;
  int64_t first, count;
  uint8_t* codes;  // (count, in)
};

// Codes along the inputs: words of a row lie `stride` apart, rows `pitch`.
void unpack_along_inputs(const Part& part, int64_t stride, int64_t pitch) {
  const int64_t in = part.matrix.in;
  const int bits = part.matrix.bits;
  const std::byte* words = part.matrix.words.data.data();
  const auto row_words = [&](int64_t row) {
    return words + (part.first + row) * pitch * int64_t{sizeof(uint32_t)};
  };
  int64_t input = 0;
  for (; bits == 4 && input + 8 <= in; input += 8) {
    for (int64_t row = 0; row < part.count; ++row) {
      const uint64_t eight = spread(word_at(row_words(row), input / 8 * stride));
      std::memcpy(part.codes + row * in + input, &eight, sizeof eight);
    }
  }
  for (; input < in; ++input) {
    for (int64_t row = 0; row < part.count; ++row) {
      part.codes[row * in + input] = code_at(row_words(row), stride, input, bits);
    }
  }
}

// Words of (in, rows / 8): eight of them for eight inputs become eight bytes of eight rows.
void unpack_awq(const Part& part) {
  const int64_t in = part.matrix.in, across = part.matrix.rows / 8;
  const std::byte* words = part.matrix.words.data.data();
  for (int64_t input = 0; input < in; input += 8) {
    const int64_t inputs = std::min<int64_t>(8, in - input);
    for (int64_t word = part.first / 8; word * 8 < part.first + part.count; ++word) {
      std::array<uint64_t, 8> bytes{};
      for (int64_t i = 0; i < inputs; ++i) {
        bytes[static_cast<size_t>(i)] = spread(word_at(words, (input + i) * across + word));
      }
      transpose(bytes);
      for (size_t nibble = 0; nibble < bytes.size(); ++nibble) {
        const int64_t row = word * 8 + kAwqRow[nibble] - part.first;
        if (row < 0 || row >= part.count) continue;
        std::memcpy(part.codes + row * in + input, &bytes[nibble], static_cast<size_t>(inputs));
      }
    }
  }
}

float float_at(const TensorEntry& entry, int64_t index) {
  const auto read = [&](auto value) {
    std::memcpy(&value, entry.data.data() + index * int64_t{sizeof value}, sizeof value);
    return value;
  };
  if (entry.dtype == DType::f16) return to_float(read(f16{}));
  if (entry.dtype == DType::bf16) return to_float(read(bf16{}));
  return read(0.0f);
}

// Of E2M1.
constexpr std::array<float, 8> kE2m1{0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

std::vector<float> e2m1_values(const IntegerMatrix& matrix, int64_t first, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count * matrix.in));
  const auto byte_of = [](const TensorEntry& entry, int64_t at) {
    return std::to_integer<uint8_t>(entry.data[static_cast<size_t>(at)]);
  };
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t input = 0; input < matrix.in; ++input) {
      const int64_t at = (first + row) * matrix.in + input;
      const int code = byte_of(matrix.words, at / 2) >> (at % 2 * 4) & 15;
      const uint8_t stored =
          byte_of(matrix.scales, (first + row) * matrix.groups + input / matrix.group_size);
      const float scale =
          matrix.group_size == 16 ? to_float(f8e4m3{stored}) : std::ldexp(1.0f, int{stored} - 127);
      const float value = kE2m1[static_cast<size_t>(code & 7)] * scale;
      values[static_cast<size_t>(row * matrix.in + input)] = code > 7 ? -value : value;
    }
  }
  return values;
}

}  // namespace

uint16_t zero_at(const IntegerMatrix& matrix, int64_t row, int64_t group) {
  if (matrix.zeros.data.empty()) return static_cast<uint16_t>(matrix.middle());
  const std::byte* words = matrix.zeros.data.data();
  int code = 0;
  if (matrix.order == Order::rows) {
    code = code_at(words + group * int64_t{sizeof(uint32_t)}, matrix.groups, row, matrix.bits);
  } else {
    const int64_t across = matrix.rows * matrix.bits / 32;
    const int64_t at = matrix.order == Order::awq ? row / 8 * 8 + kAwqNibble[row % 8] : row;
    code = code_at(words + group * across * int64_t{sizeof(uint32_t)}, 1, at, matrix.bits);
  }
  return static_cast<uint16_t>(code + matrix.zero_offset);
}

void unpack_rows(const IntegerMatrix& matrix, int64_t first, int64_t count, UnpackedRows& to) {
  RB_ASSERT(first >= 0 && count >= 0 && first + count <= matrix.rows);
  to.codes.resize(static_cast<size_t>(count * matrix.in));
  to.scales.resize(static_cast<size_t>(count * matrix.groups));
  to.zeros.resize(to.scales.size());
  const Part part{matrix, first, count, to.codes.data()};
  if (matrix.order == Order::awq) {
    unpack_awq(part);
  } else if (matrix.order == Order::columns) {
    unpack_along_inputs(part, matrix.rows, 1);
  } else {
    unpack_along_inputs(part, 1, (matrix.in * matrix.bits + 31) / 32);
  }
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t group = 0; group < matrix.groups; ++group) {
      const auto at = static_cast<size_t>(row * matrix.groups + group);
      const bool by_rows = matrix.order == Order::rows;
      to.scales[at] = float_at(matrix.scales, by_rows ? (first + row) * matrix.groups + group
                                                      : group * matrix.rows + first + row);
      to.zeros[at] = zero_at(matrix, first + row, group);
    }
  }
}

std::vector<float> integer_values(const IntegerMatrix& matrix, int64_t first, int64_t count) {
  if (matrix.order == Order::e2m1) return e2m1_values(matrix, first, count);
  UnpackedRows rows;
  unpack_rows(matrix, first, count, rows);
  std::vector<float> values(rows.codes.size());
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t input = 0; input < matrix.in; ++input) {
      const auto at = static_cast<size_t>(row * matrix.in + input);
      const auto group = static_cast<size_t>(row * matrix.groups + matrix.group_at(input));
      values[at] = static_cast<float>(rows.codes[at] - rows.zeros[group]) * rows.scales[group];
    }
  }
  return values;
}

}  // namespace rbee::io
