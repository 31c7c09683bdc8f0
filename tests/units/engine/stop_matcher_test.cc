#include "rbee/engine/text/form/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace rbee::engine {
namespace {

TEST(StopMatcher, PassesEverythingWithoutStops) {
  StopMatcher matcher({});
  EXPECT_EQ(matcher.push("abc"), "abc");
  EXPECT_EQ(matcher.flush(), "");
}

TEST(StopMatcher, FindsAStopAcrossPieces) {
  StopMatcher matcher({"###"});
  EXPECT_EQ(matcher.push("text #"), "text ");
  EXPECT_EQ(matcher.push("#"), "");
  EXPECT_EQ(matcher.push("# more"), "");
  EXPECT_EQ(matcher.matched(), "###");
  EXPECT_EQ(matcher.push("later"), "");
  EXPECT_EQ(matcher.flush(), "");
}

TEST(StopMatcher, GivesHeldTextBackWhenItIsNoStop) {
  StopMatcher matcher({"END"});
  EXPECT_EQ(matcher.push("E"), "");
  EXPECT_EQ(matcher.push("N"), "");
  EXPECT_EQ(matcher.push("x"), "ENx");
  EXPECT_EQ(matcher.push("EN"), "");
  EXPECT_EQ(matcher.flush(), "EN");
  EXPECT_EQ(matcher.matched(), "");
}

TEST(StopMatcher, TakesTheEarliestAndThereTheLongest) {
  StopMatcher matcher({"b", "abc", "ab"});
  EXPECT_EQ(matcher.push("xabcd"), "x");
  EXPECT_EQ(matcher.matched(), "abc");
}

TEST(StopMatcher, PassesStopsThatEndTooEarly) {
  StopMatcher matcher({"END", "xENDING"});
  EXPECT_EQ(matcher.pass("END and xEND"), "END and ");
  EXPECT_EQ(matcher.push("s EN"), "xENDs ");
  EXPECT_EQ(matcher.matched(), "");
  EXPECT_EQ(matcher.push("D"), "");
  EXPECT_EQ(matcher.matched(), "END");

  StopMatcher begun({"END"});
  EXPECT_EQ(begun.pass("an EN"), "an ");
  EXPECT_EQ(begun.push("D"), "");
  EXPECT_EQ(begun.matched(), "END");

  StopMatcher open({"END"});
  EXPECT_EQ(open.pass("EN"), "");
  EXPECT_EQ(open.flush(), "EN");
}

// However the text is cut, the emitted text ends before the first stop text.
TEST(StopMatcher, DoesNotDependOnTheBorders) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (int i = 0; i < 30; ++i) text += "ab"[random() % 2];
    const std::string stop = text.substr(random() % 25, 1 + random() % 5);
    StopMatcher matcher({stop});
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t length = 1 + random() % 4;
      out += matcher.push(text.substr(at, length));
      at += length;
    }
    out += matcher.flush();
    EXPECT_EQ(out, text.substr(0, text.find(stop))) << text << " / " << stop;
    EXPECT_EQ(matcher.matched(), stop);
  }
}

}  // namespace
}  // namespace rbee::engine
