// tokenizer.json as a GGUF file's vocabulary: the ids stay those of Hugging Face `tokenizers` and
// of `sentencepiece`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "golden.h"
#include "mixed_text.h"
#include "rbee/core/error.h"

namespace rbee::text::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

struct ByteLevelCase {
  const char* name;
  const char* pre;
};
class ByteLevelToGguf : public ::testing::TestWithParam<ByteLevelCase> {};

TEST_P(ByteLevelToGguf, KeepsTheIds) {
  const auto [name, pre] = GetParam();
  GgufVocab vocab = gguf_vocab_from_json(read_data(cat(name, ".json")));
  EXPECT_EQ(vocab.model, "gpt2");
  EXPECT_EQ(vocab.pre, pre);
  EXPECT_TRUE(vocab.scores.empty());
  expect_golden(*tokenizer_from_gguf(std::move(vocab)), name);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ByteLevelToGguf,
                         ::testing::Values(ByteLevelCase{"llama3", "llama-bpe"},
                                           ByteLevelCase{"qwen2", "qwen2"},
                                           ByteLevelCase{"smollm", "smollm"},
                                           ByteLevelCase{"gpt4o", "gpt-4o"},
                                           ByteLevelCase{"tekken", "tekken"}),
                         [](const auto& test) { return std::string(test.param.pre).substr(0, 3); });

const json& pieces() {
  static const json file = json::parse(read_data("spm_bpe.vocab.json"));
  return file;
}

// The merges that transformers lists for a SentencePiece model: every pair of pieces that makes a
// piece, by the piece's score.
json merges_of_pieces() {
  const auto tokens = pieces()["tokens"].get<std::vector<std::string>>();
  const auto types = pieces()["types"].get<std::vector<int>>();
  const auto scores = pieces()["scores"].get<std::vector<double>>();
  const auto is_piece = [&](const std::string& text) {
    const auto at = std::find(tokens.begin(), tokens.end(), text);
    return at != tokens.end() && types[static_cast<size_t>(at - tokens.begin())] == 1;
  };
  std::vector<size_t> order;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (types[id] == 1) order.push_back(id);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  json merges = json::array();
  for (const size_t id : order) {
    const std::string& text = tokens[id];
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const std::string left = text.substr(0, cut), right = text.substr(cut);
      if (is_piece(left) && is_piece(right)) merges.push_back({left, right});
    }
  }
  return merges;
}

// As transformers saves a Llama tokenizer that it made from a SentencePiece model.
json llama_file() {
  json file = {{"normalizer",
                {{"type", "Sequence"},
                 {"normalizers",
                  {{{"type", "Prepend"}, {"prepend", "\u2581"}},
                   {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}}}}},
               {"pre_tokenizer", nullptr},
               {"post_processor",
                {{"type", "TemplateProcessing"},
                 {"single",
                  {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
                   {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
                 {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1}}}}}}}},
               {"decoder", {{"type", "ByteFallback"}}},
               {"model",
                {{"type", "BPE"},
                 {"unk_token", "<unk>"},
                 {"byte_fallback", true},
                 {"vocab", json::object()},
                 {"merges", merges_of_pieces()}}},
               {"added_tokens", json::array()}};
  const auto tokens = pieces()["tokens"].get<std::vector<std::string>>();
  for (size_t id = 0; id < tokens.size(); ++id) {
    file["model"]["vocab"][tokens[id]] = id;
    if (id > 3) continue;
    file["added_tokens"].push_back(
        {{"id", id}, {"content", tokens[id]}, {"special", id != 3}, {"normalized", false}});
  }
  return file;
}

constexpr const char* kLlamaConfig =
    R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": "<mask>"})";

TEST(SentencePieceToGguf, GivesTheModelsOwnScores) {
  const GgufVocab vocab = gguf_vocab_from_json(llama_file().dump(), kLlamaConfig);
  EXPECT_EQ(vocab.model, "llama");
  EXPECT_EQ(vocab.tokens, pieces()["tokens"].get<std::vector<std::string>>());
  EXPECT_EQ(vocab.scores, pieces()["scores"].get<std::vector<float>>());
  EXPECT_EQ(vocab.types, pieces()["types"].get<std::vector<int32_t>>());
  EXPECT_EQ(vocab.unk, 0);
  EXPECT_EQ(vocab.bos, 1);
  EXPECT_EQ(vocab.eos, 2);
  EXPECT_EQ(vocab.pad, 3);
  EXPECT_EQ(vocab.add_bos, true);
  EXPECT_EQ(vocab.add_eos, false);
  EXPECT_EQ(vocab.add_space_prefix, true);
}

TEST(SentencePieceToGguf, KeepsTheIds) {
  const auto tokenizer =
      tokenizer_from_gguf(gguf_vocab_from_json(llama_file().dump(), kLlamaConfig));
  expect_golden(*tokenizer, "spm_bpe",
                {.decoded = false, .drop = {"<s>", "</s>", "<unk>", std::string(1, '\0')}});
}

// Both readings of one tokenizer.json over the mixed text. After an added token that is not special
// Hugging Face prepends a space, SentencePiece and the readers of GGUF files do not.
void expect_same_ids(json file) {
  file["added_tokens"][3]["special"] = true;
  const std::string text = file.dump();
  const auto before = tokenizer_from_json(text, kLlamaConfig);
  const auto after = tokenizer_from_gguf(gguf_vocab_from_json(text, kLlamaConfig));
  for (const std::string& block : mixed_blocks(7, 1 << 18)) {
    ASSERT_EQ(after->encode(block), before->encode(block)) << block;
  }
  EXPECT_EQ(after->end_tokens(), before->end_tokens());
}

TEST(SentencePieceToGguf, LlamaReadsTheSame) {
  expect_same_ids(llama_file());
}

TEST(SentencePieceToGguf, GemmaReadsTheSame) {
  json file = llama_file();
  file["normalizer"] = file["normalizer"]["normalizers"][1];
  file["pre_tokenizer"] = {{"type", "Split"},
                           {"pattern", {{"String", " "}}},
                           {"behavior", "MergedWithPrevious"},
                           {"invert", false}};
  EXPECT_EQ(gguf_vocab_from_json(file.dump()).add_space_prefix, false);
  expect_same_ids(file);
}

TEST(SentencePieceToGguf, SpecialTokensOfPhi3TakeTheSpaceOnTheirRight) {
  json file = llama_file();
  file["post_processor"] = nullptr;
  file["added_tokens"][3]["special"] = true;
  for (const int id : {2, 3}) file["added_tokens"][id]["rstrip"] = true;
  GgufVocab vocab = gguf_vocab_from_json(file.dump(), kLlamaConfig);
  EXPECT_TRUE(vocab.special_takes_space);
  vocab.special_takes_space = false;
  const std::string text = "</s> \n on</s>on<s> on";
  const auto before = tokenizer_from_json(file.dump(), kLlamaConfig);
  EXPECT_NE(tokenizer_from_gguf(vocab)->encode(text), before->encode(text));
  expect_same_ids(file);
}

TEST(JsonToGguf, IdsWithoutATokenAreFilled) {
  json file = llama_file();
  file["added_tokens"].push_back({{"id", 1303}, {"content", "<|end|>"}, {"special", true}});
  const GgufVocab vocab = gguf_vocab_from_json(file.dump());
  ASSERT_EQ(vocab.tokens.size(), 1304u);
  EXPECT_EQ(vocab.tokens[1301], "[PAD1301]");
  EXPECT_EQ(vocab.types[1301], 5);
  EXPECT_EQ(vocab.tokens[1303], "<|end|>");
  EXPECT_EQ(vocab.types[1303], 3);
}

TEST(JsonToGguf, TheVocabularysIdOfAnAddedTokenCounts) {
  json file = llama_file();
  file["added_tokens"].push_back({{"id", 1400}, {"content", "er"}, {"special", false}});
  const GgufVocab vocab = gguf_vocab_from_json(file.dump());
  EXPECT_EQ(vocab.tokens.size(), 1300u);
  EXPECT_EQ(vocab.types[260], 4);
  EXPECT_EQ(vocab.scores[260], 0);  // its rank among the merges
}

void expect_refused(const std::function<void(json&)>& change, Code code, const char* part) {
  json file = llama_file();
  change(file);
  try {
    gguf_vocab_from_json(file.dump(), kLlamaConfig);
    FAIL() << "nothing was thrown, wanted " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

TEST(JsonToGguf, RefusesWhatGgufCannotSay) {
  using enum Code;
  expect_refused([](json& f) { f["model"]["byte_fallback"] = false; }, unsupported,
                 "model: GGUF files have no way to say a BPE that is neither byte-level");
  expect_refused([](json& f) { f["model"]["end_of_word_suffix"] = "</w>"; }, unsupported, "suffix");
  expect_refused([](json& f) { f["model"]["type"] = "WordPiece"; }, unsupported, "WordPiece");
  expect_refused([](json& f) { f["normalizer"] = {{"type", "NFKC"}}; }, unsupported,
                 "normalizer: GGUF files have no way to say the normalizer NFKC");
  expect_refused([](json& f) { f["normalizer"] = nullptr; }, unsupported,
                 "that spaces stay as they are");
  expect_refused([](json& f) { f["pre_tokenizer"] = {{"type", "Whitespace"}}; }, unsupported,
                 "the pre-tokenizer Whitespace");
  expect_refused(
      [](json& f) {
        f["pre_tokenizer"] = {
            {"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", true}};
      },
      unsupported, "starts with a space");
  expect_refused(
      [](json& f) {
        f["normalizer"] = nullptr;
        f["pre_tokenizer"] = {
            {"type", "Sequence"},
            {"pretokenizers",
             {{{"type", "Split"}, {"pattern", {{"Regex", "x+"}}}, {"behavior", "Isolated"}},
              {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
      },
      unsupported, "none of the known names fits");
  expect_refused([](json& f) { f["post_processor"]["special_tokens"]["<s>"]["ids"] = {1, 1}; },
                 unsupported, "other tokens than one BOS");
}

TEST(JsonToGguf, RefusesBrokenFiles) {
  using enum Code;
  expect_refused([](json& f) { f["model"]["vocab"]["extra"] = 300; }, invalid_argument,
                 "the id 300 belongs to");
  expect_refused([](json& f) { f["model"]["vocab"]["extra"] = -1; }, invalid_argument, "id -1");
  expect_refused([](json& f) { f["model"]["merges"].push_back({"zz", "zz"}); }, invalid_argument,
                 "makes no token");
}

}  // namespace
}  // namespace rbee::text::testing
