// The vocabularies of real models, from the files in RBEE_MODEL_DIR; skipped without it.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "gguf_file.h"
#include "golden.h"
#include "mixed_text.h"

namespace rbee::text::testing {
namespace {

std::filesystem::path model_file(const char* name) {
  const char* folder = std::getenv("RBEE_MODEL_DIR");
  if (folder == nullptr) return {};
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  return std::filesystem::exists(path) ? path : std::filesystem::path();
}

void record_speed(const Tokenizer& tokenizer) {
  std::string text;
  for (const std::string& block : mixed_blocks()) text += block;
  const auto start = std::chrono::steady_clock::now();
  const size_t ids = tokenizer.encode(text).size();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  ::testing::Test::RecordProperty("ids", static_cast<int>(ids));
  ::testing::Test::RecordProperty(
      "megabytes_per_second",
      std::to_string(static_cast<double>(text.size()) / time.count() / 1e6));
}

TEST(RealModel, SmolLm2IsLikeHuggingFace) {
  const auto path = model_file("SmolLM2-135M-Instruct.Q4_1.gguf");
  if (path.empty()) GTEST_SKIP() << "RBEE_MODEL_DIR has no SmolLM2-135M-Instruct.Q4_1.gguf";
  const auto tokenizer = tokenizer_from_gguf(read_gguf_vocab(path));
  expect_golden(*tokenizer, "smollm2_real");
  const auto ids = tokenizer->encode("<|im_start|>user\nHi<|im_end|>\n");
  EXPECT_EQ(ids.front(), *tokenizer->find("<|im_start|>"));
  EXPECT_EQ(tokenizer->decode(ids, true), "<|im_start|>user\nHi<|im_end|>\n");
  EXPECT_EQ(tokenizer->end_tokens(), (std::vector<TokenId>{0, 2}));
  record_speed(*tokenizer);
}

TEST(RealModel, Gemma3IsLikeSentencePiece) {
  const auto path = model_file("gemma-3-270m-q4_k_m.gguf");
  if (path.empty()) GTEST_SKIP() << "RBEE_MODEL_DIR has no gemma-3-270m-q4_k_m.gguf";
  const auto tokenizer = tokenizer_from_gguf(read_gguf_vocab(path));
  expect_golden(*tokenizer, "gemma3_real",
                {.drop = {"\xE2\x96\x81", std::string(1, '\0')}, .parse_special = false});
  const auto ids = tokenizer->encode("<start_of_turn>user\nHi  there<end_of_turn>\n");
  EXPECT_EQ(ids.front(), tokenizer->bos());
  EXPECT_EQ(tokenizer->decode(ids), "user\nHi  there\n");
  EXPECT_EQ(tokenizer->end_tokens(), (std::vector<TokenId>{1, 106}));
  record_speed(*tokenizer);
}

}  // namespace
}  // namespace rbee::text::testing
