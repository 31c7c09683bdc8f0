#pragma once
// Numbers of JSON that are multiples of another. Internal to the folder.

#include <cstdint>
#include <string>

#include "rbee/grammar/json_numbers.h"

namespace rbee::grammar {

// numerator / 10^places, in lowest places.
struct JsonStep {
  int64_t numerator = 1;
  int64_t places = 0;
};

// The step of "multipleOf": value; integers: of whole numbers that are multiples. Throws
// invalid_argument for what is not above 0, unsupported for more than twelve places behind the
// point or more than 16 digits. place: of messages.
JsonStep json_step(double value, bool integers, const std::string& place);

// Multiples of the step within bounds, without exponents: up to 4096 of them by name, others by
// their remainders digit by digit. Without bounds integers have up to 16 digits, others up to 15
// with the step's places behind the point. work: as TextSet has it. Throws unsupported for steps of
// too many remainders, NothingFits when there is no such number.
ExprPtr json_multiples(JsonStep step, const JsonBounds& bounds, const std::string& place,
                       int64_t& work);
ExprPtr json_multiples(int64_t step, JsonIntegers bounds, const std::string& place, int64_t& work);

}  // namespace rbee::grammar
