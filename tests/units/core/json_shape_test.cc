#include "rbee/core/json_shape.h"

#include <gtest/gtest.h>

#include <string>

namespace rbee {
namespace {

TEST(JsonShape, CountsWhatNestsAndWhatIsInIt) {
  struct Case {
    const char* text;
    size_t depth, values;
  };
  for (const Case& one : {Case{"7", 0, 1}, Case{R"("a,[{")", 0, 1}, Case{"[1,2,[3]]", 2, 5},
                          Case{R"({"a\"[":[{"b":1},{}],"c":"]"})", 3, 7}}) {
    const JsonShape shape = shape_of_json(one.text);
    EXPECT_EQ(shape.depth, one.depth) << one.text;
    EXPECT_EQ(shape.values, one.values) << one.text;
  }
  const JsonShape row = shape_of_json("[" + std::string(99'999, ',') + "]");
  EXPECT_EQ(row.depth, 1U);
  EXPECT_EQ(row.values, 100'001U);
}

// A parser refuses these later, and opens no more until then.
TEST(JsonShape, OfWhatIsNoJson) {
  EXPECT_EQ(shape_of_json("").depth, 0U);
  EXPECT_EQ(shape_of_json(std::string(1000, '[')).depth, 1000U);
  EXPECT_EQ(shape_of_json("]]][").depth, 1U);
  EXPECT_EQ(shape_of_json("\"[[[").depth, 0U);
  EXPECT_EQ(shape_of_json("\"\\").depth, 0U);
}

}  // namespace
}  // namespace rbee
