#pragma once
// A token itself, rather than its text, in a text that a grammar describes: a byte that UTF-8 does
// not have, and three of the token's id. A vocabulary's tree holds tokens in both forms.

#include <string>
#include <vector>

#include "rbee/grammar/utf8_ranges.h"

namespace rbee::grammar {

inline constexpr char kTokenByte = '\xFE';
inline constexpr int32_t kMaxTokenId = (1 << 24) - 1;

// id: 0 to kMaxTokenId.
std::string token_bytes(int32_t id);

// The bytes of the tokens of a range of ids.
std::vector<ByteRanges> token_ranges(CharRange ids);

}  // namespace rbee::grammar
