// Packing keeps every value of every block format, whatever bytes the blocks hold.
#include "backends/shared/pack_blocks.h"

#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "backends/api/dispatch_blocks.h"
#include "rbee/core/dtype.h"
#include "tests/support/block_types.h"

namespace rbee {
namespace {

using shared::PackedLayout;

// Blocks of random bytes; scales may be infinite or NaN, so values are compared as bits.
template <typename Block>
std::vector<Block> random_blocks(size_t count) {
  std::mt19937 random(7);
  std::vector<Block> blocks(count);
  std::vector<unsigned char> bytes(count * sizeof(Block));
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
  std::memcpy(blocks.data(), bytes.data(), bytes.size());
  return blocks;
}

template <typename Block>
void expect_same_values(int64_t count) {
  const std::vector<Block> blocks = random_blocks<Block>(static_cast<size_t>(count));
  const int64_t in = count * Block::kElements;
  const PackedLayout at = shared::packed_layout<Block>(in);
  ASSERT_EQ(at.row_bytes % 16, 0);
  std::vector<uint8_t> row(static_cast<size_t>(at.row_bytes));
  for (int64_t group = 0; group < in / 32; ++group) {
    shared::pack_group(blocks.data(), group, row.data(), at);
  }
  for (int64_t column = 0; column < in; column += 8) {
    float values[8];
    shared::dequantize_packed8<Block>(row.data(), at, column, values);
    for (int j = 0; j < 8; ++j) {
      const int64_t i = column + j;
      const float wanted = shared::dequantize(blocks[static_cast<size_t>(i / Block::kElements)],
                                              static_cast<int>(i % Block::kElements));
      if (wanted != wanted) {
        EXPECT_TRUE(values[j] != values[j]) << i;
      } else {
        EXPECT_EQ(shared::bits_of_float(values[j]), shared::bits_of_float(wanted)) << i;
      }
    }
  }
}

class PackedWeight : public testing::TestWithParam<DType> {};

TEST_P(PackedWeight, KeepsEveryValue) {
  dispatch_blocks("test", GetParam(), [&]<typename Block>() {
    for (const int64_t count : {1, 2, 5}) expect_same_values<Block>(count);
  });
}

// Groups begin at every step of their words.
TEST(TernaryGroup, GivesTheSameCodesAtOnce) {
  using Block = shared::BlockTQ1_0;
  const std::vector<Block> blocks = random_blocks<Block>(2);
  const PackedLayout at = shared::packed_layout<Block>(512);
  std::vector<uint8_t> row(static_cast<size_t>(at.row_bytes));
  for (int64_t group = 0; group < 16; ++group) {
    shared::pack_group(blocks.data(), group, row.data(), at);
  }
  for (int64_t group = 0; group < 16; ++group) {
    shared::CodeGroup<Block> codes;
    codes.load(shared::planes_of(row.data(), at), group);
    uint32_t all[8];
    codes.all(all);
    for (int w = 0; w < 8; ++w) {
      EXPECT_EQ(all[w], shared::packed_codes<Block>(row.data(), at, 32 * group + 4 * w));
    }
  }
}

template <typename Block>
struct BookWithSigns {
  static constexpr bool kSigns = true;
  uint32_t operator()(uint32_t point) const { return shared::ClosedBook<Block>{}(point); }
  uint32_t signs(uint32_t entry) const {
    EXPECT_LT(entry, static_cast<uint32_t>(shared::SignTable<Block>::kEntries));
    return shared::SignTable<Block>::word(entry);
  }
};

TEST_P(PackedWeight, SignsOfATableGiveTheSameCodes) {
  int with_table = 0;
  dispatch_blocks("test", GetParam(), [&]<typename Block>() {
    if constexpr (shared::PackedFormat<Block>::kCodeBook == shared::CodeBook::points) {
      if (shared::SignTable<Block>::kEntries == 0) return;
      ++with_table;
      constexpr int64_t kIn = 16 * Block::kElements;
      const std::vector<Block> blocks = random_blocks<Block>(16);
      const PackedLayout at = shared::packed_layout<Block>(kIn);
      std::vector<uint8_t> row(static_cast<size_t>(at.row_bytes));
      for (int64_t group = 0; group < kIn / 32; ++group) {
        shared::pack_group(blocks.data(), group, row.data(), at);
      }
      for (int64_t group = 0; group < kIn / 32; ++group) {
        shared::CodeGroup<Block> codes;
        codes.load(shared::planes_of(row.data(), at), group);
        for (int w = 0; w < 8; ++w) {
          EXPECT_EQ(codes.codes(BookWithSigns<Block>{}, w),
                    shared::packed_codes<Block>(row.data(), at, 32 * group + 4 * w));
        }
      }
    }
  });
  const bool signs = std::string_view(name(GetParam())).starts_with("iq2") ||
                     std::string_view(name(GetParam())).starts_with("iq3");
  EXPECT_EQ(with_table, signs ? 1 : 0);
}

// Rows of a usual model: at most one part in fifty goes to padding.
TEST_P(PackedWeight, IsHardlyLargerThanTheFile) {
  for (const int64_t in : {2048, 4096, 14336}) {
    dispatch_blocks("test", GetParam(), [&]<typename Block>() {
      const int64_t file = row_bytes(GetParam(), in);
      EXPECT_LE(shared::packed_layout<Block>(in).row_bytes, file + file / 50) << in;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PackedWeight, testing::ValuesIn(test::block_types()),
                         [](const auto& each) { return std::string(name(each.param)); });

}  // namespace
}  // namespace rbee
