// Multiples of numbers (JSON schema 2020-12, validation, 6.2.1), also within bounds.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rbee/core/cat.h"
#include "rbee/grammar/json_schema.h"
#include "tests/units/grammar/text_cases.h"

namespace rbee::grammar {
namespace {

using testing::compile;
using testing::expect_schema_texts;
using testing::matches;
using testing::TextCase;

TEST(SchemaMultiples, AreWrittenDigitByDigit) {
  const std::vector<TextCase> cases = {
      {R"({"type":"integer","multipleOf":1000})",
       {"0", "1000", "-25000", "9999999999999000"},
       {"1", "100", "1001", "-0", "01000", "10000000000000000"}},
      {R"({"type":"integer","multipleOf":3600,"minimum":5,"maximum":1e12})",
       {"3600", "7200", "999999997200"},
       {"0", "3601", "1800", "-3600", "1000000000800"}},
      {R"({"type":"integer","multipleOf":4093})", {"0", "-4093", "409300"}, {"4094", "40930001"}},
      {R"({"type":"integer","multipleOf":5,"minimum":-9007199254740991,
          "maximum":9007199254740991})",
       {"0", "-5", "9007199254740990", "-9007199254740990"},
       {"9007199254740995", "-0", "1"}},
      {R"({"type":"integer","multipleOf":1024,"minimum":1,"maximum":18446744073709551615})",
       {"1024", "18446744073709550592"},
       {"0", "512", "18446744073709551616", "-1024"}},
      {R"({"type":"integer","multipleOf":25,"maximum":-30})",
       {"-50", "-1000000"},
       {"-25", "0", "50", "-60"}},
      {R"({"type":"number","multipleOf":0.01,"minimum":0,"maximum":1000000})",
       {"0", "0.01", "99.9", "99.90", "1000000", "1000000.00", "123456.78"},
       {"1000000.01", "0.001", "-0.01", "1.", ".5", "0.0", "1e2"}},
      {R"({"type":"number","multipleOf":0.5,"exclusiveMinimum":3})",
       {"3.5", "4", "4.0", "1000.5"},
       {"3", "3.0", "3.25", "0", "-3.5"}},
      {R"({"type":"number","multipleOf":0.05,"maximum":-2.5})",
       {"-2.5", "-2.55", "-100"},
       {"-2.45", "-2.51", "0", "2.5"}},
      {R"({"multipleOf":1e-8})", {"0.00000001", "-1.5", "12"}, {"0.000000001"}},
      {R"({"type":"integer","multipleOf":300,"not":{"enum":[0,600]}})",
       {"300", "-600", "900"},
       {"0", "600", "150"}},
  };
  expect_schema_texts(cases);
}

// Every number up to a bound, compared with the remainder of division.
TEST(SchemaMultiples, AreAllThatDivide) {
  for (const int step : {7, 12, 48, 75, 250, 640}) {
    const auto grammar = compile(
        parse_json_schema(cat(R"({"type":"integer","minimum":0,"multipleOf":)", step, "}")));
    for (int number = 0; number < 3000; ++number) {
      EXPECT_EQ(matches(grammar, cat(number)), number % step == 0) << number << " by " << step;
    }
  }
}

}  // namespace
}  // namespace rbee::grammar
