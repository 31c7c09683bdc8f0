#pragma once
// Numbers of JSON that are multiples of another. Internal to the folder.

#include <cstdint>
#include <string>

#include "rbee/grammar/json_numbers.h"
#include "rbee/grammar/json_rules.h"

namespace rbee::grammar {

// numerator / 10^places, in lowest places.
struct JsonStep {
  int64_t numerator = 1;
  int64_t places = 0;
};

// The step of "multipleOf": value; integers: of whole numbers that are multiples. Throws
// invalid_argument for what is not above 0, unsupported for more than six places behind the point
// or more than 16 digits. place: of messages.
JsonStep json_step(double value, bool integers, const std::string& place);

// Multiples of the step within bounds: up to 4096 of them by name, or without bounds, or from 0 on,
// or up to 0, by their remainders digit by digit. Throws unsupported for other bounds, and for
// steps that want too many rules; invalid_argument when there is no such number.
ExprPtr json_multiples(JsonRules& rules, JsonStep step, const JsonBounds& bounds,
                       const std::string& place);

}  // namespace rbee::grammar
