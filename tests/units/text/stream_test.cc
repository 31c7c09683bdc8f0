// Incremental decoding, broken input, long runs, threads.

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "mixed_text.h"
#include "rbee/text/tokenizer.h"
#include "rbee/text/utf8.h"

namespace rbee::text::testing {
namespace {

class Stream : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Tokenizer> tokenizer_ =
      tokenizer_from_json(read_data(std::string(GetParam()) + ".json"));
};

TEST_P(Stream, PiecesAreWholeCharactersAndJoinToTheText) {
  for (const std::string& block : mixed_blocks(3, 1 << 16)) {
    const auto ids = tokenizer_->encode(block);
    DecodeStream stream(*tokenizer_);
    std::string joined;
    for (const TokenId id : ids) {
      const std::string part = stream.push(id);
      ASSERT_TRUE(utf8_valid(part));
      joined += part;
    }
    joined += stream.flush();
    ASSERT_EQ(joined, tokenizer_->decode(ids));
  }
}

TEST_P(Stream, AMegabyteWithoutABreakIsFast) {
  for (const std::string part : {"a", " ", "\xE4\xB8\xAD"}) {
    std::string text;
    while (text.size() < (size_t{1} << 20)) text += part;
    const auto start = std::chrono::steady_clock::now();
    tokenizer_->encode(text);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    // Quadratic work would take hours; sanitizers and a busy machine take seconds.
    EXPECT_LT(time.count(), 60.0) << part;
  }
}

TEST_P(Stream, ThreadsShareATokenizer) {
  const std::string text = mixed_blocks(4, 1 << 14)[0];
  const auto wanted = tokenizer_->encode(text);
  std::vector<std::thread> threads;
  std::vector<int> equal(4);
  threads.reserve(equal.size());
  for (int& one : equal) {
    threads.emplace_back([&] {
      one = 1;
      for (int i = 0; i < 10; ++i) one &= tokenizer_->encode(text) == wanted;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, std::vector<int>(4, 1));
}

INSTANTIATE_TEST_SUITE_P(Kinds, Stream,
                         ::testing::Values("llama3", "gpt4o", "deepseek3", "llama2", "gemma",
                                           "unigram", "bert"),
                         [](const auto& test) { return std::string(test.param); });

TEST(DecodeStream, HoldsBackHalfACharacter) {
  const auto tokenizer = tokenizer_from_json(read_data("gpt2.json"));
  // Bytes of U+1F44D as tokens of the byte alphabet: F0 9F 91 8D.
  const TokenId f0 = *tokenizer->find("\xC3\xB0"), x9f = *tokenizer->find("\xC5\x81");
  const TokenId x91 = *tokenizer->find("\xC4\xB3"), x8d = *tokenizer->find("\xC4\xAF");
  DecodeStream stream(*tokenizer);
  EXPECT_EQ(stream.push(f0), "");
  EXPECT_EQ(stream.push(x9f), "");
  EXPECT_EQ(stream.push(x91), "");
  EXPECT_EQ(stream.push(x8d), "\xF0\x9F\x91\x8D");
  EXPECT_EQ(stream.push(f0), "");
  EXPECT_EQ(stream.push(x9f), "");
  EXPECT_EQ(stream.push(*tokenizer->find("A")),
            "\xEF\xBF\xBD"
            "A");
  EXPECT_EQ(stream.push(x91), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.push(f0), "");
  EXPECT_EQ(stream.flush(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.flush(), "");
}

// The examples of Unicode 15.0, tables 3-8 to 3-11.
TEST(Utf8, BrokenPartsAreReplacedAsUnicodeAdvises) {
  const std::string r(kReplacementUtf8);
  EXPECT_EQ(utf8_repaired("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(utf8_repaired("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(utf8_repaired("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(utf8_repaired("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), r + r + r + r + "A");
  EXPECT_EQ(utf8_repaired("plain \xC3\xA9"), "plain \xC3\xA9");
  EXPECT_EQ(utf8_repaired("\xE2\x82"), r);
}

}  // namespace
}  // namespace rbee::text::testing
