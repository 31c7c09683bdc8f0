#pragma once
// JSON numbers that are multiples of a step. Internal to the folder.

#include <cstdint>
#include <string>

#include "rbee/grammar/json_numbers.h"

namespace rbee::grammar {

// numerator / 10^places, in lowest places.
struct JsonStep {
  int64_t numerator = 1;
  int64_t places = 0;
};

// The step of "multipleOf": value. integers: only whole multiples. Throws invalid_argument if it is
// not above 0, and unsupported for more than twelve decimal places or more than 16 digits. place:
// for messages.
JsonStep json_step(double value, bool integers, const std::string& place);

// Multiples of the step within bounds, without exponents: lists up to 4096 of them, and describes
// more by their remainders digit by digit. Without bounds, integers have up to 16 digits, others up
// to 15 with the step's decimal places. work: as in TextSet. Throws unsupported if the step has too
// many remainders, and NothingFits if there is no such number.
ExprPtr json_multiples(JsonStep step, const JsonBounds& bounds, const std::string& place,
                       int64_t& work);
ExprPtr json_multiples(int64_t step, JsonIntegers bounds, const std::string& place, int64_t& work);

}  // namespace rbee::grammar
