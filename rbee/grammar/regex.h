#pragma once
// Regular expressions, of which the whole text has to match: what is regular in RE2's notation, and
// looking ahead. Characters, `.` (all but a newline), classes, \d \w \s and their opposites (ASCII
// alone), \t \n \r \f \v \0 \xHH \x{...} \uHHHH, groups (also named and non-capturing), |, * + ?
// {m} {m,} {m,n} with or without a lazy ?, ^ \A and $ \z \Z (the ends of the text, not of its
// lines), \b and \B (ASCII words), \p{...} and \P{...}, the flags i and s as (?i) and (?i:...), and
// (?=...) and (?!...). Refused by name: references, looking behind, other flags, possessive
// repetitions, and ^ behind what may be empty, as in a*^b.

#include <cstdint>
#include <functional>
#include <string_view>

#include "rbee/grammar/expression.h"

namespace rbee::grammar {

// How the characters of a match are written in the text. Absent: as they are.
using CharWriter = std::function<ExprPtr(std::vector<CharRange>)>;

// anywhere: texts of which some part matches. terminal: whole texts that more may follow, so that
// looking ahead is refused but in front of all else, where it looks at the terminal alone, $ but at
// the end, and \b.
enum class Match : uint8_t { whole, anywhere, terminal };

// where: begins the messages. Throws invalid_argument or unsupported with the place.
ExprPtr parse_regex(std::string_view where, std::string_view pattern, const CharWriter& writer = {},
                    Match match = Match::whole);

}  // namespace rbee::grammar
