#include "golden.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "mixed_text.h"
#include "rbee/text/utf8.h"

namespace rbee::text::testing {
namespace {

using nlohmann::json;

std::string hash_ids(const std::vector<TokenId>& ids) {
  uint64_t value = 0xCBF29CE484222325u;
  for (const TokenId id : ids) value = (value ^ static_cast<uint64_t>(id)) * 0x100000001B3u;
  std::string hex(16, '0');
  for (size_t i = 16; i-- > 0; value >>= 4) hex[i] = "0123456789abcdef"[value & 15];
  return hex;
}

void erase_all(std::string& text, std::string_view part) {
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at)) {
    text.erase(at, part.size());
  }
}

std::vector<std::string> blocks_without(const std::vector<std::string>& parts) {
  std::vector<std::string> blocks = mixed_blocks();
  for (std::string& block : blocks) {
    for (const std::string& part : parts) erase_all(block, part);
  }
  return blocks;
}

void expect_samples(const Tokenizer& tokenizer, const json& samples, bool decoded) {
  for (const json& sample : samples) {
    const auto text = sample["text"].get<std::string>();
    const auto ids = tokenizer.encode(text);
    EXPECT_EQ(ids, sample["ids"].get<std::vector<TokenId>>()) << "\"" << text << "\"";
    // A broken run of byte tokens: one U+FFFD per byte there, one per broken part here.
    if (!decoded || text.find("<0xFF>") != text.npos) continue;
    const auto bare = tokenizer.encode(text, {.add_special = false});
    EXPECT_EQ(tokenizer.decode(bare, true), sample["decoded"].get<std::string>()) << text;
    EXPECT_EQ(tokenizer.decode(ids), sample["decoded_plain"].get<std::string>()) << text;
  }
}

}  // namespace

void expect_golden(const Tokenizer& tokenizer, const std::string& name,
                   const GoldenOptions& options) {
  const json golden = json::parse(read_data(name + ".golden.json"));
  expect_samples(tokenizer, golden["samples"], options.decoded);
  const std::vector<std::string> blocks = blocks_without(options.drop);
  ASSERT_EQ(blocks.size(), golden["blocks"].size());
  const EncodeOptions how{.add_special = false, .parse_special = options.parse_special};
  std::string whole;
  int wrong = 0;
  for (size_t i = 0; i < blocks.size() && wrong < 3; ++i) {
    whole += blocks[i];
    const auto ids = tokenizer.encode(blocks[i], how);
    const std::string hash = hash_ids(ids).substr(8);
    if (hash == golden["blocks"][i].get<std::string>()) continue;
    ++wrong;
    ADD_FAILURE() << name << ": block " << i << " differs:\n" << utf8_repaired(blocks[i]);
  }
  if (wrong > 0) return;
  EXPECT_EQ(hash_ids(tokenizer.encode(whole, how)), golden["whole"].get<std::string>()) << name;
}

}  // namespace rbee::text::testing
