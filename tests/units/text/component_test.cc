// Single components against Hugging Face `tokenizers` on the same texts.

#include <gtest/gtest.h>

#include <deque>
#include <nlohmann/json.hpp>

#include "mixed_text.h"
#include "rbee/text/json_components.h"
#include "rbee/text/utf8.h"
#include "rbee/text/wordpiece.h"

namespace rbee::text::testing {
namespace {

using nlohmann::json;

json golden_part(const char* part) {
  return json::parse(read_data("components.golden.json"))[part];
}

TEST(Components, NormalizersAreLikeHuggingFace) {
  for (const json& entry : golden_part("normalizers")) {
    const NormalizerPtr normalizer = normalizer_from({entry["config"], "normalizer"});
    for (const json& one : entry["cases"]) {
      auto text = one[0].get<std::string>();
      normalizer->apply(text);
      EXPECT_EQ(text, one[1].get<std::string>()) << entry["config"] << " of " << one[0];
    }
  }
}

TEST(Components, PreTokenizersAreLikeHuggingFace) {
  for (const json& entry : golden_part("pre_tokenizers")) {
    const PreTokenizerPtr cutter = pre_tokenizer_from({entry["config"], "pre"}, false);
    for (const json& one : entry["cases"]) {
      const auto text = one[0].get<std::string>();
      std::deque<std::string> rewritten;
      Words words{{}, true, &rewritten};
      if (!text.empty()) words.items.push_back(text);
      cutter->apply(words);
      const std::vector<std::string> got(words.items.begin(), words.items.end());
      EXPECT_EQ(got, one[1].get<std::vector<std::string>>()) << entry["config"] << " of " << one[0];
    }
  }
}

// The result of Tokenizer::decode() for the pieces.
std::string joined(const PieceDecoder& decoder, const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += decoder.apply(token);
  for (int left = decoder.leading_spaces_dropped(); left != 0 && text.starts_with(' '); --left) {
    text.erase(0, 1);
  }
  return utf8_repaired(text);
}

TEST(Components, DecodersAreLikeHuggingFace) {
  for (const json& entry : golden_part("decoders")) {
    PieceDecoder decoder;
    add_decoder({entry["config"], "decoder"}, decoder);
    for (const json& one : entry["cases"]) {
      EXPECT_EQ(joined(decoder, one[0].get<std::vector<std::string>>()), one[1].get<std::string>())
          << entry["config"] << " of " << one[0];
    }
  }
}

TEST(Components, AFrameOfSeveralProcessorsNests) {
  const json config = json::parse(R"({"type": "Sequence", "processors": [
      {"type": "ByteLevel"},
      {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1]},
      {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x", "type_id": 0}},
       {"Sequence": {"id": "A", "type_id": 0}}], "special_tokens": {"x": {"ids": [7, 8]}}}]})");
  const SpecialFrame frame = post_processor_from({config, "post_processor"});
  EXPECT_EQ(frame.prefix, (std::vector<TokenId>{7, 8, 1}));
  EXPECT_EQ(frame.suffix, std::vector<TokenId>{2});
}

// Characters are counted, not bytes: "\u00e9" has two.
TEST(Components, LongWordsAreUnknownToWordPiece) {
  Vocab vocab;
  vocab.add("[UNK]", 0);
  vocab.add("a", 1);
  vocab.add("##\u00e9", 2);
  const WordPiece model(vocab, {.max_characters = 3});
  TokenizeScratch scratch;
  const auto tokens = [&](std::string_view word) {
    std::vector<TokenId> out;
    model.tokenize(word, scratch, out);
    return out;
  };
  EXPECT_EQ(tokens("a\u00e9\u00e9"), (std::vector<TokenId>{1, 2, 2}));
  EXPECT_EQ(tokens("a\u00e9\u00e9\u00e9"), std::vector<TokenId>{0});
}

}  // namespace
}  // namespace rbee::text::testing
