// T5's tokenizer in both forms; data come from tools/goldens/make_flow_goldens.py.

#include "rbee/text/sentencepiece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "rbee/core/error.h"
#include "tests/support/data_folder.h"

namespace rbee::text {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string data(const std::string& name) {
  const std::string path = test::data_folder() + "/models/image/data/t5_tokenizer/" + name;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// `column`: 1, transformers' ids; 2, sentencepiece's
void expect_ids(const Tokenizer& tokenizer, size_t column) {
  const json golden = json::parse(data("golden.json"));
  ASSERT_EQ(golden.size(), 200u);
  for (const json& sample : golden) {
    const auto text = sample[0].get<std::string>();
    EXPECT_EQ(tokenizer.encode(text), sample[column].get<std::vector<TokenId>>()) << text;
  }
}

std::string error_of(const std::string& file) {
  try {
    vocab_from_sentencepiece(file);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(SentencePieceTest, IdsAreThoseOfSentencePiece) {
  const auto tokenizer = tokenizer_from_gguf(vocab_from_sentencepiece(data("spiece.model")));
  expect_ids(*tokenizer, 2);
  EXPECT_EQ(tokenizer->eos(), 1);
  EXPECT_FALSE(tokenizer->bos());
}

TEST(SentencePieceTest, IdsOfTheOtherFormAreThoseOfTransformers) {
  expect_ids(*tokenizer_from_json(data("tokenizer.json")), 1);
}

TEST(SentencePieceTest, FieldsAreThoseOfTheFile) {
  const GgufVocab vocab = vocab_from_sentencepiece(data("spiece.model"));
  EXPECT_EQ(vocab.model, "t5");
  EXPECT_EQ(vocab.tokens.at(0), "<pad>");
  EXPECT_EQ(vocab.tokens.at(2), "<unk>");
  EXPECT_EQ(vocab.types.at(2), 2);
  EXPECT_EQ(vocab.pad, 0);
  EXPECT_EQ(vocab.unk, 2);
  EXPECT_EQ(vocab.remove_extra_whitespaces, true);
  EXPECT_FALSE(vocab.precompiled_charsmap.empty());
}

TEST(SentencePieceTest, BrokenFilesAreErrors) {
  const std::string whole = data("spiece.model");
  EXPECT_EQ(error_of(whole), "");
  EXPECT_THAT(error_of(""), HasSubstr("no pieces"));
  EXPECT_THAT(error_of(whole.substr(0, 20)), HasSubstr("ends within a field"));
  EXPECT_THAT(error_of("\x0b"), HasSubstr("wire type 3"));
  EXPECT_THAT(error_of("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), HasSubstr("64 bits"));
  EXPECT_THAT(error_of("\x0a\x02\x10\x01"), HasSubstr("32-bit"));
  EXPECT_THAT(error_of("\x0a\x03\x0a\x01"
                       "a\x12\x02\x18\x03"),
              HasSubstr("known are unigram"));
  for (size_t size = 0; size < whole.size(); size += 7) error_of(whole.substr(0, size));
}

}  // namespace
}  // namespace rbee::text
