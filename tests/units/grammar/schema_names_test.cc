// Properties with long names.
#include <gtest/gtest.h>

#include <string>

#include "rbee/core/cat.h"
#include "rbee/grammar/json_schema.h"
#include "tests/units/grammar/grammar_text.h"

namespace rbee::grammar {
namespace {

using testing::compile;
using testing::matches;

TEST(SchemaNames, LongOnesAreToldApartByTheirBeginnings) {
  const std::string name(20'000, 'a');
  const auto made = compile(parse_json_schema(
      cat(R"({"properties":{")", name, R"(":{"const":1}},"additionalProperties":{"const":2}})")));
  const auto accepts = [&](const std::string& key, int value) {
    return matches(made, cat(R"({")", key, R"(":)", value, "}"));
  };
  EXPECT_TRUE(accepts(name, 1));
  EXPECT_TRUE(accepts("a", 2));
  EXPECT_TRUE(accepts(std::string(100, 'a') + "b", 2));
  EXPECT_FALSE(accepts(name, 2));
  EXPECT_FALSE(accepts(name + "a", 1));
}

}  // namespace
}  // namespace rbee::grammar
