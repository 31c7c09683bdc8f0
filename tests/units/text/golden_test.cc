// Ids and texts must equal those of Hugging Face `tokenizers` and of `sentencepiece`.

#include "golden.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "mixed_text.h"

namespace rbee::text::testing {
namespace {

using nlohmann::json;

class FromJson : public ::testing::TestWithParam<const char*> {};

TEST_P(FromJson, IsLikeHuggingFace) {
  const std::string name = GetParam();
  const auto tokenizer = tokenizer_from_json(read_data(name + ".json"));
  expect_golden(*tokenizer, name);
}

INSTANTIATE_TEST_SUITE_P(Kinds, FromJson,
                         ::testing::Values("gpt2", "llama3", "phi4", "qwen2", "smollm", "gpt4o",
                                           "tekken", "deepseek3", "falcon", "clip", "llama2",
                                           "gemma", "metaspace", "unigram", "unigram_bytes",
                                           "bert"),
                         [](const auto& test) { return std::string(test.param); });

// The vocabulary of a byte-level tokenizer.json in a GGUF file's form.
GgufVocab as_gguf(const std::string& name, const std::string& pre) {
  const json file = json::parse(read_data(name + ".json"));
  GgufVocab vocab;
  vocab.model = "gpt2";
  vocab.pre = pre;
  const json& tokens = file["model"]["vocab"];
  vocab.tokens.resize(tokens.size());
  vocab.types.assign(tokens.size(), 1);
  for (const auto& [text, id] : tokens.items()) vocab.tokens[id.get<size_t>()] = text;
  for (const json& token : file["added_tokens"]) vocab.types[token["id"].get<size_t>()] = 3;
  for (const json& merge : file["model"]["merges"]) {
    vocab.merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  vocab.bos = 0;
  vocab.eos = 2;
  vocab.add_bos = name == "llama3";
  return vocab;
}

struct GgufCase {
  const char* name;
  const char* pre;
};
class FromGguf : public ::testing::TestWithParam<GgufCase> {};

TEST_P(FromGguf, IsLikeHuggingFace) {
  const auto [name, pre] = GetParam();
  const auto tokenizer = tokenizer_from_gguf(as_gguf(name, pre));
  expect_golden(*tokenizer, name);
}

INSTANTIATE_TEST_SUITE_P(Kinds, FromGguf,
                         ::testing::Values(GgufCase{"llama3", "llama-bpe"},
                                           GgufCase{"qwen2", "qwen2"}, GgufCase{"smollm", "smollm"},
                                           GgufCase{"gpt4o", "gpt-4o"},
                                           GgufCase{"tekken", "tekken"},
                                           GgufCase{"deepseek3", "deepseek-v3"}),
                         [](const auto& test) { return std::string(test.param.name); });

// GGUF files do not say that Phi-4's marks absorb the white space beside them, so the test skips
// lines with marks in white space.
TEST(FromGguf, Phi4IsLikeTokenizerJson) {
  const auto from_gguf = tokenizer_from_gguf(as_gguf("phi4", "dbrx"));
  const auto from_json = tokenizer_from_json(read_data("phi4.json"));
  const std::string chat =
      "<|im_start|>system<|im_sep|>Be brief.<|im_end|><|im_start|>user<|im_sep|>12345 I'LL "
      "x\n\n<|im_start|>assistant<|im_sep|>";
  std::istringstream lines(read_data("fragments.txt") + "\n" + chat);
  int compared = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto ids = from_json->encode(line);
    if (line.find("f <|") == 0) continue;
    EXPECT_EQ(from_gguf->encode(line), ids) << line;
    EXPECT_EQ(from_gguf->decode(ids, true), from_json->decode(ids, true)) << line;
    ++compared;
  }
  EXPECT_GT(compared, 90);
  EXPECT_EQ(from_json->encode("a <|im_sep|>\n b"), from_json->encode("a<|im_sep|>b"));
  EXPECT_NE(from_gguf->encode("a <|im_sep|>\n b"), from_gguf->encode("a<|im_sep|>b"));
}

// Pieces in a GGUF file's form: a mark before words, no "##". Pieces that begin with a mark of
// their own become ambiguous, so the test skips lines with one.
TEST(FromGguf, WordPieceIsLikeTokenizerJson) {
  const std::string mark = "\xE2\x96\x81";
  const json file = json::parse(read_data("bert.json"));
  GgufVocab vocab;
  vocab.model = "bert";
  const json& tokens = file["model"]["vocab"];
  vocab.tokens.resize(tokens.size());
  vocab.types.assign(tokens.size(), 1);
  for (const json& token : file["added_tokens"]) vocab.types[token["id"].get<size_t>()] = 3;
  for (const auto& [text, id] : tokens.items()) {
    const auto at = id.get<size_t>();
    const std::string piece = text.starts_with("##") ? text.substr(2) : mark + text;
    vocab.tokens[at] = vocab.types[at] == 3 ? text : piece;
  }
  const auto from_gguf = tokenizer_from_gguf(vocab);
  const auto from_json = tokenizer_from_json(read_data("bert.json"));
  std::istringstream lines(read_data("fragments.txt"));
  int compared = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(mark) != std::string::npos) continue;
    EXPECT_EQ(from_gguf->encode(line), from_json->encode(line)) << line;
    EXPECT_EQ(from_gguf->decode(from_json->encode(line)),
              from_json->decode(from_json->encode(line)));
    ++compared;
  }
  EXPECT_GT(compared, 90);
}

TEST(FromGguf, TekkenAddsBosUnlessTold) {
  GgufVocab vocab = as_gguf("tekken", "tekken");
  EXPECT_TRUE(tokenizer_from_gguf(vocab)->encode("").empty());
  vocab.add_bos.reset();
  EXPECT_EQ(tokenizer_from_gguf(vocab)->encode("").size(), 1u);
}

TEST(FromGguf, SentencePieceBpeIsLikeSentencePiece) {
  const json file = json::parse(read_data("spm_bpe.vocab.json"));
  GgufVocab vocab;
  vocab.model = "llama";
  vocab.tokens = file["tokens"].get<std::vector<std::string>>();
  vocab.scores = file["scores"].get<std::vector<float>>();
  vocab.types = file["types"].get<std::vector<int32_t>>();
  vocab.bos = 1;
  vocab.eos = 2;
  vocab.unk = 0;
  const auto tokenizer = tokenizer_from_gguf(std::move(vocab));
  expect_golden(*tokenizer, "spm_bpe",
                {.decoded = false, .drop = {"<s>", "</s>", "<unk>", std::string(1, '\0')}});
}

}  // namespace
}  // namespace rbee::text::testing
