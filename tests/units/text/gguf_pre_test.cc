// How GGUF files say that text is split: names in tokenizer.ggml.pre.
#include "rbee/text/gguf_pre.h"

#include <gmock/gmock.h>

#include <deque>

#include "rbee/core/error.h"
#include "rbee/text/pre_tokenizer.h"
#include "rbee/text/tokenizer.h"

namespace rbee::text::testing {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> cut(std::string_view name, std::string_view text) {
  std::deque<std::string> rewritten;
  Words words{{text}, true, &rewritten};
  for (const std::string_view pattern : gguf_pre(name).patterns) {
    regex_pre_tokenizer(pattern, SplitBehavior::isolated, false, name)->apply(words);
  }
  std::vector<std::string> out;
  for (const std::string_view word : words.items) {
    if (!word.empty()) out.emplace_back(word);
  }
  return out;
}

TEST(GgufPre, AnUnknownNameIsRefused) {
  for (const char* name : {"mellum3", "llama", "Qwen2", "default ", "whitespace"}) {
    EXPECT_THROW(gguf_pre(name), Error) << name;
  }
  EXPECT_EQ(&gguf_pre(""), &gguf_pre("default"));
}

TEST(GgufPre, CutsByTheNamedRules) {
  EXPECT_THAT(cut("mellum", "it's 123"), ElementsAre("it", "'s", " 123"));
  EXPECT_THAT(cut("mellum2", "it's 12"), ElementsAre("it", "'s", " ", "1", "2"));
  EXPECT_THAT(cut("glm5", "IT'S 12345"), ElementsAre("IT", "'S", " ", "123", "45"));
  EXPECT_THAT(cut("ufakzeka", "Ankara'da 12"), ElementsAre("Ankara", "'da", " ", "1", "2"));
  EXPECT_THAT(cut("seed-coder", "a!\n"), ElementsAre("a", "!", "\n"));
  EXPECT_THAT(cut("bailingmoe2", "it'll\n\nx"), ElementsAre("it", "'ll", "\n\n", "x"));
  EXPECT_THAT(cut("minicpm5", "x12345"), ElementsAre("x", "123", "45"));
  EXPECT_THAT(cut("laguna", "a \n\n b"), ElementsAre("a", " ", "\n\n", " b"));
  EXPECT_THAT(cut("exaone-moe", "a b/\n"), ElementsAre("a b", "/\n"));
  EXPECT_THAT(cut("spark2_5", "ab!\n\n"), ElementsAre("ab", "!", "\n", "\n"));
  EXPECT_THAT(cut("jais-2", "a     b"), ElementsAre("a", "    ", " b"));
  EXPECT_THAT(cut("chameleon", "IMGIMGABZ  a1"), ElementsAre("IMGIMGABZ", "  ", "a", "1"));
  EXPECT_THAT(cut("youtu", "Don't 12"), ElementsAre("Don't", " ", "1", "2"));
  EXPECT_THAT(cut("gemma4", "a b\n\nc"), ElementsAre("a b", "\n\n", "c"));
}

TEST(GgufPre, ThousandsAreCountedFromTheEndOfANumber) {
  for (const char* name : {"tiny_aya", "superbpe", "afmoe"}) {
    EXPECT_THAT(cut(name, "1234567"), ElementsAre("1", "234", "567")) << name;
    EXPECT_THAT(cut(name, "12345"), ElementsAre("12", "345")) << name;
    EXPECT_THAT(cut(name, "123"), ElementsAre("123")) << name;
  }
}

TEST(GgufPre, KimiKeepsHanFromOtherLetters) {
  EXPECT_THAT(cut("kimi-k2", "ab\xE4\xB8\xAD\xE6\x96\x87yz's 1234"),
              ElementsAre("ab", "\xE4\xB8\xAD\xE6\x96\x87", "yz's", " ", "123", "4"));
}

// Gemma 4's tokens are text, with SentencePiece's mark for a space and numbered bytes.
TEST(GgufPre, GemmaFoursTokensAreText) {
  GgufVocab vocab{.model = "gemma4",
                  .tokens = {"<bos>", "a", "\xE2\x96\x81",
                             "\xE2\x96\x81"
                             "a"}};
  vocab.types = {3, 1, 1, 1};
  vocab.tokens.emplace_back("<0x62>");
  vocab.types.push_back(6);
  vocab.merges = {"\xE2\x96\x81 a"};
  vocab.bos = 0;
  const auto tokenizer = tokenizer_from_gguf(vocab);
  EXPECT_THAT(tokenizer->encode("a ab"), ElementsAre(0, 1, 3, 4));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{1, 3, 4}), "a ab");
}

// As llama.cpp reads them.
TEST(GgufPre, OfEqualMergesTheFirstHoldsAndUnknownOnesAreLeftOut) {
  GgufVocab vocab{.model = "gemma4", .tokens = {"<bos>", "a", "b", "c", "ab", "bc"}};
  vocab.types = {3, 1, 1, 1, 1, 1};
  vocab.merges = {"a b", "b c", "a b", "x y", "ab c"};
  vocab.bos = 0;
  EXPECT_THAT(tokenizer_from_gguf(vocab)->encode("abc"), ElementsAre(0, 4, 3));
}

}  // namespace
}  // namespace rbee::text::testing
