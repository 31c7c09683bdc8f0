#include "rbee/quant/integer_rows.h"

#include <cstring>

#include "backends/shared/quant_blocks.h"
#include "rbee/core/error.h"
#include "rbee/core/half.h"

namespace rbee::quant {
namespace {

constexpr int64_t kBlock = 32;  // elements of all three types

// Element i in the low half of byte i, element 16 + i in the high one.
void put_nibbles(const uint8_t* codes, int shift, uint8_t* to) {
  for (int i = 0; i < kBlock / 2; ++i) {
    const int low = codes[i] + shift, high = codes[i + kBlock / 2] + shift;
    to[i] = static_cast<uint8_t>(low | high << 4);
  }
}

void fill(shared::BlockQ4_0& block, const uint8_t* codes, int bits, float scale, uint16_t) {
  block.d = to_f16(scale).bits;
  put_nibbles(codes, 8 - (1 << (bits - 1)), block.qs);
}

void fill(shared::BlockQ4_1& block, const uint8_t* codes, int, float scale, uint16_t zero) {
  block.d = to_f16(scale).bits;
  block.m = to_f16(-static_cast<float>(zero) * scale).bits;
  put_nibbles(codes, 0, block.qs);
}

void fill(shared::BlockQ8_0& block, const uint8_t* codes, int, float scale, uint16_t) {
  block.d = to_f16(scale).bits;
  for (int i = 0; i < kBlock; ++i) block.qs[i] = static_cast<int8_t>(codes[i] - 128);
}

template <typename Block>
void fill_all(const IntegerRows& rows, std::byte* to) {
  for (int64_t row = 0; row < rows.rows; ++row) {
    for (int64_t i = 0; i < rows.in / kBlock; ++i) {
      const auto group =
          static_cast<size_t>(row * rows.groups + rows.group_of_block[static_cast<size_t>(i)]);
      Block block;
      fill(block, &rows.codes[static_cast<size_t>(row * rows.in + i * kBlock)], rows.bits,
           rows.scales[group], rows.zeros[group]);
      std::memcpy(to, &block, sizeof block);
      to += sizeof block;
    }
  }
}

}  // namespace

void integer_blocks(DType dtype, const IntegerRows& rows, std::byte* to) {
  constexpr const char* kOp = "integer_blocks";
  check(rows.in % kBlock == 0, kOp, "rows have ", rows.in, " inputs, wanted a multiple of ",
        kBlock);
  const bool nibbles = dtype == DType::q4_0 || dtype == DType::q4_1;
  check(nibbles ? rows.bits >= 2 && rows.bits <= 4 : dtype == DType::q8_0 && rows.bits == 8, kOp,
        rows.bits, " bits do not become ", dtype);
  if (dtype == DType::q4_0) return fill_all<shared::BlockQ4_0>(rows, to);
  if (dtype == DType::q4_1) return fill_all<shared::BlockQ4_1>(rows, to);
  fill_all<shared::BlockQ8_0>(rows, to);
}

}  // namespace rbee::quant
