#include "rbee/text/char_class.h"

#include <unicode/uniset.h>

#include <algorithm>
#include <map>

namespace rbee::text {
namespace {

constexpr char32_t kCodePoints = 0x110000;

UBool add_range(const void* context, UChar32 start, UChar32 limit, UCharCategory category) {
  auto* all = static_cast<CategoryMask*>(const_cast<void*>(context));
  std::fill(all + start, all + limit, U_MASK(category));
  return true;
}

void add_bit(std::vector<CategoryMask>& all, const char* pattern, CategoryMask bit) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::UnicodeSet set(icu::UnicodeString(pattern), status);
  for (int32_t i = 0; i < set.getRangeCount(); ++i) {
    for (UChar32 code = set.getRangeStart(i); code <= set.getRangeEnd(i); ++code) {
      all[static_cast<size_t>(code)] |= bit;
    }
  }
}

}  // namespace

const CharClasses& CharClasses::get() {
  static const CharClasses classes;
  return classes;
}

CharClasses::CharClasses() {
  std::vector<CategoryMask> all(kCodePoints);
  u_enumCharTypes(add_range, all.data());
  add_bit(all, "[:White_Space:]", kSpaceBit);
  add_bit(all, "[[:Alphabetic:][:M:][:Nd:][:Pc:][:Join_Control:]]", kWordBit);
  std::map<std::vector<CategoryMask>, uint16_t> seen;
  for (size_t start = 0; start < kCodePoints; start += kBlockSize) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(start);
    std::vector<CategoryMask> block(first, first + kBlockSize);
    const auto [found, added] = seen.try_emplace(block, static_cast<uint16_t>(seen.size()));
    if (added) blocks_.insert(blocks_.end(), block.begin(), block.end());
    block_of_.push_back(found->second);
  }
}

}  // namespace rbee::text
