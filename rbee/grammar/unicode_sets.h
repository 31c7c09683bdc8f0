#pragma once
// Sets of characters by Unicode properties. Internal to the folder.

#include <optional>
#include <string_view>
#include <vector>

#include "rbee/grammar/expression.h"

namespace rbee::grammar {

// The characters that \p{name} means (UTS #18, 1.2): a general category (L, Lu, Letter, gc=Nd), a
// script (Greek, Script=Greek, scx=Grek) or a binary property (Alphabetic). Ranges are sorted and
// do not overlap. Nothing if there is no such property.
std::optional<std::vector<CharRange>> property_chars(std::string_view name);

// These characters, and all single characters with the same case folding as one of them.
std::vector<CharRange> close_over_case(const std::vector<CharRange>& ranges);

// The characters in both.
std::vector<CharRange> both_chars(const std::vector<CharRange>& a, const std::vector<CharRange>& b);

}  // namespace rbee::grammar
