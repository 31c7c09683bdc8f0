// Tokens that end a turn are recognised by their text, whatever type the file gives them.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "rbee/text/tokenizer.h"

namespace rbee::text::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// One letter, followed by more tokens of their type.
GgufVocab vocab_with(const std::vector<std::pair<std::string, int32_t>>& more) {
  GgufVocab vocab{.model = "llama", .tokens = {"<unk>", "a"}, .scores = {0, -1}, .types = {2, 1}};
  for (const auto& [text, type] : more) {
    vocab.tokens.push_back(text);
    vocab.scores.push_back(-2);
    vocab.types.push_back(type);
  }
  vocab.add_space_prefix = false;
  return vocab;
}

TEST(TurnEnds, ThoseOfAnotherTypeInAGgufFileCount) {
  for (const char* text :
       {"<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end|>", "[EOS]", "<turn|>"}) {
    for (const int32_t type : {1, 4, 5}) {
      const auto tokenizer = tokenizer_from_gguf(vocab_with({{text, type}}));
      EXPECT_THAT(tokenizer->end_tokens(), ElementsAre(2)) << text << " of type " << type;
      EXPECT_THAT(tokenizer->encode(std::string("a") + text + "a"), ElementsAre(1, 2, 1)) << text;
      EXPECT_TRUE(tokenizer->is_special(2)) << text;
      EXPECT_EQ(tokenizer->piece(2), "") << text;
    }
  }
  GgufVocab vocab = vocab_with({{"<|im_end|>", 1}});
  vocab.types.clear();
  EXPECT_THAT(tokenizer_from_gguf(vocab)->end_tokens(), ElementsAre(2));
}

TEST(TurnEnds, ThoseThatAreNotSpecialInTokenizerJsonCount) {
  json file = json::parse(R"({"model": {"type": "BPE", "vocab": {"a": 0, "<|im_end|>": 1},
                                        "merges": []},
                              "added_tokens": [{"id": 2, "content": "<|eot_id|>"}]})");
  const auto tokenizer = tokenizer_from_json(file.dump());
  EXPECT_THAT(tokenizer->end_tokens(), ElementsAre(1, 2));
  EXPECT_THAT(tokenizer->encode("a<|im_end|>a<|eot_id|>"), ElementsAre(0, 1, 0, 2));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{0, 1, 0, 2}), "a a");
}

TEST(TurnEnds, TextsWithAnotherMeaningDoNot) {
  // GPT-OSS and Solar Open write <|end|> after each message of a turn.
  auto ends = [](const std::vector<std::pair<std::string, int32_t>>& more) {
    return tokenizer_from_gguf(vocab_with(more))->end_tokens();
  };
  EXPECT_THAT(ends({{"<|end|>", 3}, {"<|return|>", 4}, {"<|call|>", 4}}), ElementsAre(3, 4));
  EXPECT_THAT(ends({{"<|end|>", 3}, {"<|flush|>", 3}, {"<|calls|>", 3}}), ElementsAre(3, 4));
  // HTML, unless <s> begins texts.
  EXPECT_THAT(ends({{"</s>", 4}, {"<s>", 4}, {"<eos>", 3}}), ElementsAre(4));
  EXPECT_THAT(ends({{"</s>", 1}}), IsEmpty());
  EXPECT_THAT(ends({{"</s>", 4}, {"<s>", 3}}), ElementsAre(2));
  EXPECT_THAT(ends({{"</s>", 3}}), ElementsAre(2));
  EXPECT_THAT(ends({{"<|user|>", 4}, {"<b>", 1}}), IsEmpty());
}

// If a file has no usable ids.
TEST(TurnEnds, SentencePiecesSpecialTokensAreKnownByTheirTexts) {
  GgufVocab vocab{.model = "llama", .tokens = {"<unk>", "<s>", "</s>", "a"}};
  vocab.scores = {0, 0, 0, -1};
  vocab.types = {2, 3, 3, 1};
  vocab.add_space_prefix = false;
  const auto tokenizer = tokenizer_from_gguf(vocab);
  EXPECT_THAT(tokenizer->encode("ax"), ElementsAre(1, 3, 0));
  EXPECT_EQ(tokenizer->eos(), 2);
  vocab.types = {1, 1, 1, 1};
  EXPECT_EQ(tokenizer_from_gguf(vocab)->bos(), std::nullopt);
}

}  // namespace
}  // namespace rbee::text::testing
