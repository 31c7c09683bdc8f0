#include "rbee/core/cat.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cstdint>
#include <limits>

namespace elsewhere {

struct Point {
  int x, y;
};

static void append_to(std::string& out, const Point& point) {
  out += rbee::cat('<', point.x, ' ', point.y, '>');
}

}  // namespace elsewhere

namespace rbee {
namespace {

TEST(Cat, JoinsTextAndNumbers) {
  EXPECT_EQ(cat(), "");
  EXPECT_EQ(cat("a", std::string("b"), std::string_view("c"), 'd'), "abcd");
  EXPECT_EQ(cat(-7, ' ', 3u, ' ', true, ' ', false), "-7 3 true false");
  EXPECT_EQ(cat(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(cat(std::numeric_limits<uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(cat(uint8_t{65}), "65") << "a number, not a letter";
  const char* nothing = nullptr;
  EXPECT_EQ(cat(nothing), "(null)");
}

TEST(Cat, FloatsReadBackExactly) {
  EXPECT_EQ(cat(1.5), "1.5");
  EXPECT_EQ(cat(0.1f), "0.1");
  for (const double value : {1.0 / 3, -1e-300, 1.7976931348623157e308, 5e-324}) {
    const std::string text = cat(value);
    double back = 0;
    std::from_chars(text.data(), text.data() + text.size(), back);
    EXPECT_EQ(back, value) << text;
  }
}

TEST(Cat, TypesJoinByTheirOwnAppendTo) {
  EXPECT_EQ(cat("at ", elsewhere::Point{1, -2}), "at <1 -2>");
}

}  // namespace
}  // namespace rbee
