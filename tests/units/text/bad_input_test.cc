// Malformed files give an error naming the field; a number alone never causes an allocation.

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "mixed_text.h"
#include "rbee/core/error.h"
#include "rbee/text/tokenizer.h"

namespace rbee::text::testing {
namespace {

using nlohmann::json;

// The message of the error on loading; "" if there is none.
std::string error_of(const std::string& text, Code code = Code::invalid_argument) {
  try {
    tokenizer_from_json(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return {};
}

json tiny() {
  return json::parse(R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2},
                                   "merges": ["a b"]},
                         "added_tokens": [{"id": 3, "content": "<s>", "special": true}]})");
}

// Loads tiny() with the value at `where` (a JSON pointer) replaced.
std::string error_with(const char* where, json value, Code code = Code::invalid_argument) {
  json file = tiny();
  file[json::json_pointer(where)] = std::move(value);
  return error_of(file.dump(), code);
}

TEST(TokenizerJson, TheTinyOneLoads) {
  const auto tokenizer = tokenizer_from_json(tiny().dump());
  EXPECT_EQ(tokenizer->encode("<s>abba"), (std::vector<TokenId>{3, 2, 1, 0}));
  EXPECT_EQ(tokenizer->vocab_size(), 4);
  EXPECT_EQ(tokenizer->find("ab"), 2);
  EXPECT_EQ(tokenizer->find("x"), std::nullopt);
  EXPECT_TRUE(tokenizer->is_special(3));
  EXPECT_FALSE(tokenizer->is_special(2));
  EXPECT_FALSE(tokenizer->is_special(-1));
  EXPECT_EQ(tokenizer->piece(99), "");
  EXPECT_EQ(tokenizer->piece(-1), "");
  EXPECT_EQ(tokenizer->piece(3), "");
  EXPECT_EQ(tokenizer->encode("<s>a", {.parse_special = false}), (std::vector<TokenId>{0}));
}

TEST(TokenizerJson, ErrorsNameTheField) {
  EXPECT_EQ(error_of("[]"), "tokenizer.json: is not a JSON object");
  EXPECT_EQ(error_of(""),
            "tokenizer.json: no JSON: line 1, column 1: expected a value, found the "
            "end of the text");
  EXPECT_EQ(error_of("{\"model\": {"),
            "tokenizer.json: no JSON: line 1, column 12: expected a name "
            "in double quotes or }, found the end of the text");
  EXPECT_EQ(error_of("{}"), "tokenizer.json: has no \"model\"");
  EXPECT_EQ(error_with("/model", 3), "tokenizer.json: model: is not an object");
  EXPECT_EQ(error_with("/model/merges", {"a b", "a c"}),
            "tokenizer.json: model.merges[1]: token \"c\" is not in the vocab");
  EXPECT_EQ(error_with("/model/merges", {"ab"}),
            "tokenizer.json: model.merges[0]: \"ab\" is not two tokens");
  EXPECT_EQ(error_with("/model/merges", json::parse(R"([["a", "b", "a"]])")),
            "tokenizer.json: model.merges[0]: has a value of a wrong type");
  EXPECT_EQ(error_with("/model/merges", {7}),
            "tokenizer.json: model.merges[0]: has a value of a wrong type");
  EXPECT_EQ(error_with("/model/vocab/b", "x"),
            "tokenizer.json: model.vocab[\"b\"]: has a value of a wrong type");
  EXPECT_EQ(error_with("/model/vocab/b", 0),
            "tokenizer.json: model.vocab[\"b\"]: id 0 belongs to \"a\"");
  EXPECT_EQ(error_with("/model/unk_token", "<unk>"),
            "tokenizer.json: model: unk_token \"<unk>\" is not in the vocab");
  EXPECT_EQ(error_with("/model/fuse_unk", 1),
            "tokenizer.json: model.fuse_unk: is not true or false");
  EXPECT_EQ(error_with("/added_tokens/0/id", 2),
            "tokenizer.json: added_tokens[0].id: 2 belongs to \"ab\"");
  EXPECT_EQ(error_with("/added_tokens/0/content", ""),
            "tokenizer.json: added_tokens[0].content: has 0 bytes");
  EXPECT_EQ(error_with("/normalizer", json::parse(R"({"type": "Strip", "strip_left": "no"})")),
            "tokenizer.json: normalizer.strip_left: is not true or false");
  EXPECT_EQ(
      error_with("/post_processor",
                 json::parse(R"({"type": "BertProcessing", "sep": ["b", 1], "cls": ["x", 9]})")),
      "tokenizer.json: post_processor: id 9 is no token");
}

TEST(TokenizerJson, UnknownComponentsAreNamed) {
  EXPECT_EQ(error_with("/model/type", "Magic", Code::unsupported),
            "tokenizer.json: model.type: \"Magic\" is not among BPE, Unigram, WordPiece");
  for (const char* key : {"normalizer", "pre_tokenizer", "post_processor", "decoder"}) {
    EXPECT_EQ(error_with((std::string("/") + key).c_str(), {{"type", "Magic"}}, Code::unsupported),
              std::string("tokenizer.json: ") + key + ": type \"Magic\" is not known");
  }
  const json broken = {{"type", "Split"}, {"pattern", {{"Regex", "(a"}}}, {"behavior", "Isolated"}};
  EXPECT_NE(error_with("/pre_tokenizer", broken, Code::unsupported)
                .find("tokenizer.json: pre_tokenizer.pattern.Regex: pattern \"(a\""),
            std::string::npos);
}

TEST(TokenizerJson, NumbersAreBounded) {
  EXPECT_NE(error_with("/model/vocab/b", 2000000000).find("out of range"), std::string::npos);
  EXPECT_NE(error_with("/model/vocab/b", -1).find("out of range"), std::string::npos);
  EXPECT_NE(error_with("/model/vocab/b", 18446744073709551615u).find("too large"),
            std::string::npos);
  EXPECT_NE(error_with("/added_tokens/0/id", 2000000000).find("is outside of"), std::string::npos);
  EXPECT_NE(error_with("/added_tokens/0/id", 18446744073709551615u)
                .find("18446744073709551615 is outside of 0"),
            std::string::npos);
  EXPECT_NE(error_of("{\"a\": " + std::string(100000, '[')).find("nesting is deeper than 64"),
            std::string::npos);
}

TEST(TokenizerJson, SlowPatternsEndInAnError) {
  json file = tiny();
  file["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "(a+)+$"}}}, {"behavior", "Isolated"}};
  const auto tokenizer = tokenizer_from_json(file.dump());
  EXPECT_THROW(tokenizer->encode(std::string(10000, 'a') + "b"), Error);
}

// Each step may be harmless, but together they would fill the memory.
TEST(TokenizerJson, StepsThatMultiplyTextAreBounded) {
  const json twice = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}};
  const json regex = {{"type", "Replace"}, {"pattern", {{"Regex", "a"}}}, {"content", "aa"}};
  const json once = {
      {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(1000, 'a')}};
  const json before = {{"type", "Prepend"}, {"prepend", std::string(1 << 20, 'a')}};
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const auto repeated = [](const char* type, const char* list, const json& step) {
    return json{{"type", type}, {list, json(64, step)}};
  };
  const std::vector<std::pair<const char*, json>> parts{
      {"normalizer", repeated("Sequence", "normalizers", twice)},
      {"normalizer", repeated("Sequence", "normalizers", regex)},
      {"normalizer", repeated("Sequence", "normalizers", {{"type", "ByteLevel"}})},
      {"normalizer", once},
      {"normalizer", before},
      {"pre_tokenizer", repeated("Sequence", "pretokenizers", bytes)}};
  const std::string text = std::string(4000, 'a') + "\u00e9\u00e9\u00e9" + std::string(4000, 'a');
  for (const auto& [field, part] : parts) {
    json file = tiny();
    file[field] = part;
    const auto tokenizer = tokenizer_from_json(file.dump());
    std::string error;
    try {
      tokenizer->encode(text + (field == std::string("pre_tokenizer") ? text + "\u00e9" : ""));
    } catch (const Error& thrown) {
      error = thrown.what();
    }
    EXPECT_NE(error.find("more than 32 times as many"), std::string::npos) << part.dump(1);
  }
  json file = tiny();
  file["decoder"] = repeated("Sequence", "decoders", twice);
  EXPECT_THROW(tokenizer_from_json(file.dump())->piece(0), Error);
}

TEST(TokenizerJson, NamesOfTheEndsComeFromTheConfigs) {
  const auto tokenizer =
      tokenizer_from_json(tiny().dump(), R"({"bos_token": {"content": "<s>"}, "eos_token": null})",
                          R"({"eos_token": "ab"})");
  EXPECT_EQ(tokenizer->bos(), 3);
  EXPECT_EQ(tokenizer->eos(), 2);
  EXPECT_EQ(tokenizer->end_tokens(), std::vector<TokenId>{2});
  EXPECT_THROW(tokenizer_from_json(tiny().dump(), "{"), Error);
}

GgufVocab tiny_gguf() {
  GgufVocab vocab;
  vocab.model = "llama";
  vocab.tokens = {"<unk>", "\xE2\x96\x81", "a",
                  "\xE2\x96\x81"
                  "a"};
  vocab.scores = {0, -3, -2, -1};
  vocab.types = {2, 1, 1, 1};
  vocab.unk = 0;
  return vocab;
}

std::string gguf_error(const GgufVocab& vocab) {
  try {
    tokenizer_from_gguf(vocab);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(TokenizerGguf, ErrorsNameTheField) {
  EXPECT_EQ(gguf_error(tiny_gguf()), "");
  GgufVocab vocab = tiny_gguf();
  vocab.scores.pop_back();
  EXPECT_EQ(gguf_error(vocab), "tokenizer.ggml.scores: 3 scores for 4 tokens");
  vocab = tiny_gguf();
  vocab.model = "t5";
  vocab.scores[1] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(gguf_error(vocab), "tokenizer.ggml.scores: a score is infinite");
  vocab = tiny_gguf();
  vocab.eos = 4;
  EXPECT_EQ(gguf_error(vocab), "tokenizer.ggml.eos_token_id: 4 is outside of 4 tokens");
  vocab = tiny_gguf();
  vocab.tokens[2] = "\xFF";
  EXPECT_EQ(gguf_error(vocab), "tokenizer.ggml.tokens: token 2 is not UTF-8");
  vocab = tiny_gguf();
  vocab.model = "rwkv";
  EXPECT_EQ(gguf_error(vocab),
            "tokenizer.ggml.model: \"rwkv\" is not among gpt2, gemma4, llama, t5, bert");
  vocab.model = "gpt2";
  EXPECT_EQ(gguf_error(vocab), "tokenizer.ggml.merges: is missing");
  vocab.merges = {"aa"};
  EXPECT_EQ(gguf_error(vocab), "tokenizer.ggml.merges[0]: \"aa\" is not two tokens");
  vocab.pre = "llama-bpe2";
  EXPECT_EQ(gguf_error(vocab), "tokenizer.ggml.pre: \"llama-bpe2\" is not known");
}

TEST(TokenizerGguf, CharactersWithoutATokenAreUnknown) {
  const auto tokenizer = tokenizer_from_gguf(tiny_gguf());
  EXPECT_EQ(tokenizer->encode("a xa"), (std::vector<TokenId>{3, 1, 0, 2}));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{3, 1, 2}), "a a");
}

TEST(TokenizerGguf, UnigramTakesTheBestPath) {
  GgufVocab vocab = tiny_gguf();
  vocab.model = "t5";
  vocab.tokens.emplace_back("</s>");
  vocab.scores.push_back(0);
  vocab.types.push_back(3);
  vocab.eos = 4;
  const auto tokenizer = tokenizer_from_gguf(vocab);
  EXPECT_EQ(tokenizer->encode("  a   aa "), (std::vector<TokenId>{3, 3, 2, 4}));
}

}  // namespace
}  // namespace rbee::text::testing
