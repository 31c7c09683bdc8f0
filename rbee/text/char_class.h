#pragma once
// Unicode properties of code points. The first use builds the table from ICU's data.

#include <unicode/uchar.h>

#include <cstdint>
#include <vector>

namespace rbee::text {

using CategoryMask = uint32_t;  // bit i: general category i of ICU's UCharCategory

inline constexpr CategoryMask kLetter = U_GC_L_MASK;
inline constexpr CategoryMask kMark = U_GC_M_MASK;
inline constexpr CategoryMask kNumber = U_GC_N_MASK;
inline constexpr CategoryMask kPunctuation = U_GC_P_MASK;
// BERT's control characters. Unassigned code points are not among them.
inline constexpr CategoryMask kControl = U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK;
inline constexpr CategoryMask kSpaceBit = 1u << 30;  // property White_Space, the \s of regexes
inline constexpr CategoryMask kWordBit = 1u << 31;   // UTS #18's \w

class CharClasses {
 public:
  static const CharClasses& get();

  // The category's bit with kSpaceBit and kWordBit; `code` is at most U+10FFFF.
  CategoryMask operator[](char32_t code) const {
    return blocks_[block_of_[code >> kBlockBits] * kBlockSize + (code & (kBlockSize - 1))];
  }

 private:
  static constexpr int kBlockBits = 7;
  static constexpr size_t kBlockSize = size_t{1} << kBlockBits;

  CharClasses();

  std::vector<uint16_t> block_of_;
  std::vector<CategoryMask> blocks_;  // equal blocks are stored once
};

inline bool is_ascii_punctuation(char32_t code) {
  return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') ||
         (code >= '[' && code <= '`') || (code >= '{' && code <= '~');
}

}  // namespace rbee::text
