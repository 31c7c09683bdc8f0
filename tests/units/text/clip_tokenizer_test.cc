// Ids of Hugging Face's CLIPTokenizer; data come from tools/goldens/make_image_goldens.py.

#include "rbee/text/clip_tokenizer.h"

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
  const std::string path = test::data_folder() + "/models/image/data/tokenizer/" + name;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

class ClipTokenizerTest : public testing::Test {
 protected:
  ClipTokenizerFiles files() const {
    return {.vocab_json = vocab_, .merges = merges_, .tokenizer_config_json = config_};
  }
  void expect_error(const std::string& part) const {
    try {
      clip_tokenizer(files());
      ADD_FAILURE() << "no error with " << part;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }

  std::string vocab_ = data("vocab.json");
  std::string merges_ = data("merges.txt");
  std::string config_ = data("tokenizer_config.json");
};

TEST_F(ClipTokenizerTest, IdsAreThoseOfTransformers) {
  const ClipTokenizer clip = clip_tokenizer(files());
  const json golden = json::parse(data("golden.json"));
  ASSERT_EQ(golden.size(), 200u);
  for (const json& sample : golden) {
    const auto text = sample[0].get<std::string>();
    EXPECT_EQ(clip.tokenizer->encode(text), sample[1].get<std::vector<TokenId>>()) << text;
  }
}

TEST_F(ClipTokenizerTest, SpecialIdsComeFromTheFiles) {
  const ClipTokenizer clip = clip_tokenizer(files());
  EXPECT_EQ(clip.bos, 1022);
  EXPECT_EQ(clip.eos, 1023);
  EXPECT_EQ(clip.pad, clip.tokenizer->find("!"));
  EXPECT_EQ(clip.max_tokens, 77);
  config_.clear();
  EXPECT_EQ(clip_tokenizer(files()).pad, 1023);
  // -1 in 64 bits.
  config_ = R"({"model_max_length": 18446744073709551615})";
  EXPECT_EQ(clip_tokenizer(files()).max_tokens, 77);
  config_ = R"({"model_max_length": 1e30, "bos_token": "a</w>"})";
  const ClipTokenizer other = clip_tokenizer(files());
  EXPECT_EQ(other.max_tokens, 77);
  EXPECT_EQ(other.bos, other.tokenizer->find("a</w>"));
}

// CLIP's published order of ids: there, too, "a</w>" is 320.
TEST(ClipVocabularyTest, FollowsFromTheMerges) {
  constexpr std::string_view kMerges = "#version: 0.2\nc a\nca t</w>\n";
  const ClipTokenizer clip = clip_tokenizer({.merges = kMerges});
  EXPECT_EQ(clip.tokenizer->vocab_size(), 516);
  EXPECT_EQ(clip.bos, 514);
  EXPECT_EQ(clip.eos, 515);
  EXPECT_EQ(clip.pad, 515);
  EXPECT_EQ(clip.tokenizer->encode("a Cat"), (std::vector<TokenId>{514, 320, 513, 515}));
  EXPECT_EQ(
      clip_tokenizer({.merges = kMerges, .tokenizer_config_json = R"({"pad_token": "!"})"}).pad, 0);
}

TEST_F(ClipTokenizerTest, WrongFilesAreNamed) {
  const std::string merges = merges_;
  merges_ = "#version: 0.2\na b\na b c\n";
  expect_error("merges.txt: line 3");
  merges_.clear();
  expect_error("neither tokenizer.json nor merges.txt");
  merges_ = merges;
  vocab_ = "{";
  expect_error("vocab.json: no JSON: line 1, column 2: expected a name in double quotes");
  vocab_ = "[]";
  expect_error("vocab.json: it does not hold an object");
  vocab_ = R"({"<|startoftext|>": 0})";
  expect_error("vocab.json: it has no token <|endoftext|>");
}

}  // namespace
}  // namespace rbee::text
