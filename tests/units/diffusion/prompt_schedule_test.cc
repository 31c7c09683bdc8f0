// Prompt editing and prompts of several parts. Marked cases are examples from AUTOMATIC1111's
// documentation of its parser.

#include "rbee/diffusion/prompt_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace rbee::diffusion {

static bool operator==(const PromptAt& a, const PromptAt& b) {
  return a.last == b.last && a.text == b.text;
}
static void PrintTo(const PromptAt& at, std::ostream* out) {
  *out << at.last << ": \"" << at.text << '"';
}

namespace {

using testing::ElementsAre;
using At = PromptAt;

std::vector<At> of_ten(std::string_view prompt, int32_t before = 0) {
  return schedule_prompt(prompt, {.calls = 10, .before = before});
}

TEST(PromptSchedule, ReadsTheExamplesOfA1111) {
  EXPECT_THAT(of_ten("test"), ElementsAre(At{10, "test"}));
  EXPECT_THAT(of_ten("a [b:3]"), ElementsAre(At{3, "a "}, At{10, "a b"}));
  EXPECT_THAT(of_ten("a [b: 3]"), ElementsAre(At{3, "a "}, At{10, "a b"}));
  EXPECT_THAT(of_ten("a [[[b]]:2]"), ElementsAre(At{2, "a "}, At{10, "a [[b]]"}));
  EXPECT_THAT(of_ten("[(a:2):3]"), ElementsAre(At{3, ""}, At{10, "(a:2)"}));
  EXPECT_THAT(of_ten("a [b : c : 1] d"), ElementsAre(At{1, "a b  d"}, At{10, "a  c  d"}));
  EXPECT_THAT(of_ten("a[b:[c:d:2]:1]e"), ElementsAre(At{1, "abe"}, At{2, "ace"}, At{10, "ade"}));
  EXPECT_THAT(of_ten("a [unbalanced"), ElementsAre(At{10, "a [unbalanced"}));
  EXPECT_THAT(of_ten("a [b:.5] c"), ElementsAre(At{5, "a  c"}, At{10, "a b c"}));
  EXPECT_THAT(of_ten("a [{b|d{:.5] c"), ElementsAre(At{5, "a  c"}, At{10, "a {b|d{ c"}));
  EXPECT_THAT(of_ten("((a][:b:c [d:3]"), ElementsAre(At{3, "((a][:b:c "}, At{10, "((a][:b:c d"}));
  // The second pass of ten steps after a first of ten.
  EXPECT_THAT(of_ten("a [b:.5] c", 10), ElementsAre(At{10, "a b c"}));
  EXPECT_THAT(of_ten("a [b:1.5] c", 10), ElementsAre(At{5, "a  c"}, At{10, "a b c"}));
}

TEST(PromptSchedule, AlternatesAsTheExamplesOfA1111) {
  const auto four = [](std::string_view prompt) { return schedule_prompt(prompt, {.calls = 4}); };
  EXPECT_THAT(four("[a|(b:1.1)]"),
              ElementsAre(At{1, "a"}, At{2, "(b:1.1)"}, At{3, "a"}, At{4, "(b:1.1)"}));
  EXPECT_THAT(four("[fe|]male"),
              ElementsAre(At{1, "female"}, At{2, "male"}, At{3, "female"}, At{4, "male"}));
  // Equal neighbours are merged.
  EXPECT_THAT(schedule_prompt("[fe|||]male", {.calls = 6}),
              ElementsAre(At{1, "female"}, At{4, "male"}, At{5, "female"}, At{6, "male"}));
  EXPECT_THAT(four("[a|[b:c:3]]"), ElementsAre(At{1, "a"}, At{2, "b"}, At{3, "a"}, At{4, "c"}));
  EXPECT_THAT(four("[[x|y]:z:2]"), ElementsAre(At{1, "x"}, At{2, "y"}, At{4, "z"}));
}

TEST(PromptSchedule, EndsAndBeginsParts) {
  EXPECT_THAT(of_ten("a[ b::0.25]"), ElementsAre(At{2, "a b"}, At{10, "a"}));
  EXPECT_THAT(of_ten("(a [b:c:4]:1.3)"), ElementsAre(At{4, "(a b:1.3)"}, At{10, "(a c:1.3)"}));
  // A number without a point counts calls; one with a point is a share.
  EXPECT_THAT(of_ten("[a:b:1]"), ElementsAre(At{1, "a"}, At{10, "b"}));
  EXPECT_THAT(of_ten("[a:b:1.0]"), ElementsAre(At{10, "a"}));
  EXPECT_THAT(of_ten("[a:b:0]"), ElementsAre(At{10, "b"}));
  EXPECT_THAT(of_ten("[a:b:-3]"), ElementsAre(At{10, "b"}));
  EXPECT_THAT(of_ten("[a:b:99]"), ElementsAre(At{10, "a"}));
  EXPECT_THAT(of_ten("[a:b:14]", 10), ElementsAre(At{4, "a"}, At{10, "b"}));
}

TEST(PromptSchedule, LeavesOtherBracketsAlone) {
  for (const char* same : {"[a]", "[a:b]", "[a:b:c]", "[a:b:c:3]", "[a:1:b]", "a | b", "(a:1.2)",
                           "\\[a:b:3\\]", "\\[a:b:3]", "[a:b:3\\]", "[a|b:c]", "[a (b:3]", "]["}) {
    EXPECT_THAT(of_ten(same), ElementsAre(At{10, same}));
  }
  EXPECT_THAT(of_ten("[a\\:b:c:3]"), ElementsAre(At{3, "a\\:b"}, At{10, "c"}));
  EXPECT_THAT(of_ten("[[a:b:3]]"), ElementsAre(At{3, "[a]"}, At{10, "[b]"}));
}

TEST(PromptSchedule, AnyTextIsRead) {
  for (const char c : {'[', '(', '|', ':', '\\'}) {
    const std::string many(60000, c);
    EXPECT_THAT(of_ten(many), ElementsAre(At{10, many}));
  }
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "[x:";
  for (int i = 0; i < 1000; ++i) deep += ":3]";
  const auto read = of_ten(deep);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_TRUE(read[1].text.starts_with("[x:"));  // nested deeper than the parser reads
  EXPECT_EQ(read[0].text, "x");
  harness::expect_error("prompt", "0 calls", "", [] { schedule_prompt("a", {.calls = 0}); });
}

TEST(PromptSchedule, IsReadAtEachCall) {
  const auto schedule = of_ten("[a:b:3]");
  EXPECT_EQ(prompt_at(schedule, 0).text, "a");
  EXPECT_EQ(prompt_at(schedule, 3).text, "a");
  EXPECT_EQ(prompt_at(schedule, 4).text, "b");
  EXPECT_EQ(prompt_at(schedule, 11).text, "b");
}

void expect_shares(std::string_view prompt,
                   const std::vector<std::pair<std::string, float>>& wanted) {
  const auto shares = split_prompt(prompt);
  ASSERT_EQ(shares.size(), wanted.size()) << prompt;
  for (size_t i = 0; i < shares.size(); ++i) {
    EXPECT_EQ(shares[i].text, wanted[i].first) << prompt;
    EXPECT_FLOAT_EQ(shares[i].weight, wanted[i].second) << prompt;
  }
}

TEST(PromptShares, StandAroundTheWordAnd) {
  expect_shares("a cat AND a dog", {{"a cat", 1}, {" a dog", 1}});
  expect_shares("a cat :1.2 AND a dog: -.5 AND fog:2 ",
                {{"a cat", 1.2f}, {" a dog", -0.5f}, {" fog", 2}});
  expect_shares("(a:1.2) AND [b:c:3]", {{"(a:1.2)", 1}, {" [b:c:3]", 1}});
  expect_shares("SAND and ANDY AND_ 2AND", {{"SAND and ANDY AND_ 2AND", 1}});
  expect_shares("a clock, 12:30", {{"a clock, 12:30", 1}});
  expect_shares("a:" + std::string(50, '9') + " AND b:-1e9", {{"a", 1000}, {" b:-1e9", 1}});
  expect_shares("AND", {{"", 1}, {"", 1}});
  expect_shares("", {{"", 1}});
}

}  // namespace
}  // namespace rbee::diffusion
