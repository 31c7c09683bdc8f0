#pragma once
// Regular expressions that must match the whole text: the regular part of RE2's notation, and
// lookahead. Characters, `.` (all but a newline), classes, \d \w \s and their opposites (ASCII
// alone), \t \n \r \f \v \0 \xHH \x{...} \uHHHH, groups (also named and non-capturing), |, * + ?
// {m} {m,} {m,n} with or without a lazy ?, ^ \A and $ \z \Z (the ends of the text, not of its
// lines), \b and \B (ASCII words), \p{...} and \P{...}, the flags i and s as (?i) and (?i:...), and
// (?=...) and (?!...). Refused by name: back references, lookbehind, other flags, possessive
// repetitions, and ^ after a part that may be empty, as in a*^b.

#include <cstdint>
#include <functional>
#include <string_view>

#include "rbee/grammar/expression.h"

namespace rbee::grammar {

// How the characters of a match are written in the text; absent: unchanged.
using CharWriter = std::function<ExprPtr(std::vector<CharRange>)>;

// anywhere: some part of the text must match. terminal: the match may be followed by more text, so
// these are refused: lookahead, except at the very beginning, where it sees only the terminal; $,
// except at the end; and \b.
enum class Match : uint8_t { whole, anywhere, terminal };

// Messages begin with `where`. Throws invalid_argument or unsupported with the place.
ExprPtr parse_regex(std::string_view where, std::string_view pattern, const CharWriter& writer = {},
                    Match match = Match::whole);

}  // namespace rbee::grammar
