#include "rbee/diffusion/prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace rbee::diffusion {
namespace {

using testing::ElementsAre;

struct Wanted {
  std::string text;
  float weight;
};

void expect_parts(std::string_view prompt, PromptSyntax syntax, const std::vector<Wanted>& wanted) {
  const auto parts = parse_prompt(prompt, syntax);
  ASSERT_EQ(parts.size(), wanted.size()) << prompt;
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].text, wanted[i].text) << prompt;
    EXPECT_NEAR(parts[i].weight, wanted[i].weight, 1e-5) << prompt;
  }
}

// The first four are examples from AUTOMATIC1111's documentation of its parser.
TEST(Prompt, WeightsAreThoseOfA1111) {
  const auto a1111 = PromptSyntax::a1111;
  expect_parts("normal text", a1111, {{"normal text", 1}});
  expect_parts("an (important) word", a1111, {{"an ", 1}, {"important", 1.1f}, {" word", 1}});
  expect_parts("(unbalanced", a1111, {{"unbalanced", 1.1f}});
  expect_parts("\\(literal\\]", a1111, {{"(literal]", 1}});
  expect_parts("(a:1.3) [b] ((c))", a1111,
               {{"a", 1.3f}, {" ", 1}, {"b", 1 / 1.1f}, {" ", 1}, {"c", 1.21f}});
  expect_parts("(one (two:1.5) three)", a1111, {{"one ", 1.1f}, {"two", 1.65f}, {" three", 1.1f}});
  expect_parts("ratio 16:9) ok]", a1111, {{"ratio 16:9) ok]", 1}});
  expect_parts("(a:b:1.5)", a1111, {{"a:b", 1.5f}});
  // Sums of floats as programs write them.
  expect_parts("(a:1.2000000000000002) (b: +.30000000000000004 )", a1111,
               {{"a", 1.2f}, {" ", 1}, {"b", 0.3f}});
  expect_parts("(unnecessary)(parens)", a1111, {{"unnecessaryparens", 1.1f}});
  expect_parts("", a1111, {{"", 1}});
}

// Worked out by hand from the pattern in A1111's parser: there a lone backslash is a token that
// adds nothing.
TEST(Prompt, BackslashesAreThoseOfA1111) {
  const auto a1111 = PromptSyntax::a1111;
  expect_parts(R"(dog\ face)", a1111, {{"dog face", 1}});
  expect_parts(R"(a\nb\:c)", a1111, {{"anb:c", 1}});
  expect_parts(R"(a\\b)", a1111, {{R"(a\b)", 1}});
  expect_parts(R"(a\\\b)", a1111, {{R"(a\b)", 1}});
  expect_parts(R"(a\)", a1111, {{"a", 1}});
  expect_parts(R"(\)", a1111, {{"", 1}});
  expect_parts(R"((a\)b))", a1111, {{"a)b", 1.1f}});
  expect_parts(R"(\\(a))", a1111, {{"\\", 1}, {"a", 1.1f}});
  expect_parts(R"((a\:1.5))", a1111, {{"a", 1.5f}});
  expect_parts(R"((a:1.5\))", a1111, {{"a:1.5)", 1.1f}});
  expect_parts(R"([a\]b] c)", a1111, {{"a]b", 1 / 1.1f}, {" c", 1}});
  expect_parts("(x:1.5", a1111, {{"x:1.5", 1.1f}});
  expect_parts("[(x", a1111, {{"x", 1}});
  expect_parts("x)](y", a1111, {{"x)]", 1}, {"y", 1.1f}});
  const auto parts = parse_prompt(R"(a\BREAK b)", a1111);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_TRUE(parts[1].ends_chunk);
}

TEST(Prompt, BreakEndsAChunk) {
  const auto parts = parse_prompt("a cat  BREAK (a dog), BREAKFAST", PromptSyntax::a1111);
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[0].text, "a cat");
  EXPECT_TRUE(parts[1].ends_chunk);
  EXPECT_EQ(parts[2].text, "a dog");
  EXPECT_EQ(parts[3].text, ", BREAKFAST");
}

TEST(Prompt, WeightsAreThoseOfComfy) {
  const auto comfy = PromptSyntax::comfy;
  expect_parts("a (b) (c:1.5)", comfy, {{"a ", 1}, {"b", 1.1f}, {" ", 1}, {"c", 1.5f}});
  expect_parts("(a (b:0.5) c:2)", comfy, {{"a ", 2}, {"b", 0.5f}, {" c", 2}});
  expect_parts("((a))", comfy, {{"a", 1.21f}});
  expect_parts("[x] \\(y\\) (z", comfy, {{"[x] (y) (z", 1}});
}

TEST(Prompt, WeightsStayFinite) {
  expect_parts("((((a:999999999):999999999):0):9)", PromptSyntax::a1111, {{"a", 0}});
  expect_parts("(((a:999999999):999999999):9)", PromptSyntax::a1111, {{"a", 1000}});
  expect_parts("(a:-999999999)", PromptSyntax::comfy, {{"a", -1000}});
}

TEST(Prompt, NoneTakesEverythingAsText) {
  expect_parts("(a:2) BREAK [b]", PromptSyntax::none, {{"(a:2) BREAK [b]", 1}});
}

TEST(Prompt, AnyTextParses) {
  expect_parts(std::string(3000, '('), PromptSyntax::comfy, {{std::string(3000, '('), 1}});
  const auto deep =
      parse_prompt(std::string(3000, '(') + "x" + std::string(3000, ')'), PromptSyntax::comfy);
  EXPECT_EQ(deep.size(), 1u);
  EXPECT_EQ(parse_prompt(std::string(3000, '[') + "x", PromptSyntax::a1111).size(), 1u);
}

// Searching from each colon to the text's end would take minutes.
TEST(Prompt, ColonsAreReadOnce) {
  const std::string colons(size_t{1} << 20, ':');
  expect_parts("(" + colons, PromptSyntax::a1111, {{colons, 1.1f}});
  expect_parts("(" + colons + "2)", PromptSyntax::a1111, {{colons.substr(1), 2}});
}

// One id per character: the character itself.
std::vector<int32_t> letters(std::string_view text) {
  return {text.begin(), text.end()};
}

ChunkOptions small_chunks() {
  return {.length = 6, .start = 1, .end = 2, .pad = 3, .comma = ','};
}

TEST(Chunks, ArePaddedAndCut) {
  const auto one = chunk_prompt({{"ab", 1.5f}}, letters, small_chunks());
  ASSERT_EQ(one.size(), 1u);
  EXPECT_THAT(one[0].ids, ElementsAre(1, 'a', 'b', 2, 3, 3));
  EXPECT_THAT(one[0].weights, ElementsAre(1, 1.5f, 1.5f, 1, 1, 1));
  EXPECT_TRUE(one[0].weighted());
  const auto two = chunk_prompt({{"abcdef", 1}}, letters, small_chunks());
  ASSERT_EQ(two.size(), 2u);
  EXPECT_THAT(two[0].ids, ElementsAre(1, 'a', 'b', 'c', 'd', 2));
  EXPECT_THAT(two[1].ids, ElementsAre(1, 'e', 'f', 2, 3, 3));
  EXPECT_FALSE(two[0].weighted());
  ChunkOptions single = small_chunks();
  single.single = true;
  EXPECT_EQ(chunk_prompt({{"abcdef", 1}}, letters, single).size(), 1u);
}

TEST(Chunks, OfFullLengthAreOne) {
  EXPECT_EQ(chunk_prompt({{"abcd", 1}}, letters, small_chunks()).size(), 1u);
  const auto empty = chunk_prompt({{"", 1}}, letters, small_chunks());
  ASSERT_EQ(empty.size(), 1u);
  EXPECT_THAT(empty[0].ids, ElementsAre(1, 2, 3, 3, 3, 3));
}

TEST(Chunks, AreCutAfterANearComma) {
  const auto cut = chunk_prompt({{"a,bcd", 1}}, letters, small_chunks());
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_THAT(cut[0].ids, ElementsAre(1, 'a', ',', 2, 3, 3));
  EXPECT_THAT(cut[1].ids, ElementsAre(1, 'b', 'c', 'd', 2, 3));
  ChunkOptions near = small_chunks();
  near.look_back = 2;
  EXPECT_THAT(chunk_prompt({{"a,bcd", 1}}, letters, near)[0].ids,
              ElementsAre(1, 'a', ',', 'b', 'c', 2));
}

TEST(Chunks, KeepWordsOfSeveralIdsWhole) {
  ChunkOptions whole = small_chunks();
  whole.together = [](int32_t id) -> size_t { return id == 'x' ? 3 : 1; };
  const auto moved = chunk_prompt({{"abxyzc", 1}}, letters, whole);
  ASSERT_EQ(moved.size(), 2u);
  EXPECT_THAT(moved[0].ids, ElementsAre(1, 'a', 'b', 2, 3, 3));
  EXPECT_THAT(moved[1].ids, ElementsAre(1, 'x', 'y', 'z', 'c', 2));
  EXPECT_EQ(chunk_prompt({{"axyz", 1}}, letters, whole).size(), 1u);
  // Too long for one chunk.
  whole.together = [](int32_t id) -> size_t { return id == 'x' ? 5 : 1; };
  EXPECT_THAT(chunk_prompt({{"axyzuv", 1}}, letters, whole)[0].ids,
              ElementsAre(1, 'a', 'x', 'y', 'z', 2));
}

TEST(Chunks, EndAtBreaks) {
  const auto chunks =
      chunk_prompt(parse_prompt("a BREAK b", PromptSyntax::a1111), letters, small_chunks());
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_THAT(chunks[0].ids, ElementsAre(1, 'a', 2, 3, 3, 3));
  EXPECT_THAT(chunks[1].ids, ElementsAre(1, 'b', 2, 3, 3, 3));
}

TEST(Chunks, NeedRoom) {
  harness::expect_error("prompt", "2", "room",
                        [] { chunk_prompt({{"a", 1}}, letters, {.length = 2}); });
}

}  // namespace
}  // namespace rbee::diffusion
