#pragma once
// Regular expressions, of which the whole text has to match: what is regular in RE2's notation.
// Characters, `.` (all but a newline), classes, \d \w \s and their opposites (ASCII), \t \n \r \f
// \v
// \0 \xHH \x{...} \uHHHH, groups (also named and non-capturing), |, * + ? {m} {m,} {m,n} with or
// without a lazy ?, and ^ and $ at the ends, where they change nothing of a whole match. In front
// of all else, behind a ^ where only a part has to match, also (?=...) and (?!...). Refused by
// name: references, other looking around, \b, Unicode classes, flags and possessive repetitions.

#include <cstdint>
#include <functional>
#include <string_view>

#include "rbee/grammar/expression.h"

namespace rbee::grammar {

// How the characters of a match are written in the text. Absent: as they are.
using CharWriter = std::function<ExprPtr(std::vector<CharRange>)>;

// anywhere: texts of which some part matches, the first or last where ^ or $ says so (outside of
// groups alone).
enum class Match : uint8_t { whole, anywhere };

// where: begins the messages. Throws invalid_argument or unsupported with the place.
ExprPtr parse_regex(std::string_view where, std::string_view pattern, const CharWriter& writer = {},
                    Match match = Match::whole);

}  // namespace rbee::grammar
