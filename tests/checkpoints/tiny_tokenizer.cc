#include "tests/checkpoints/tiny_tokenizer.h"

#include <nlohmann/json.hpp>

#include "rbee/core/cat.h"

namespace rbee::test {
namespace {

nlohmann::json special_token(int id, const std::string& text) {
  return {{"id", id},        {"content", text}, {"special", true},    {"single_word", false},
          {"lstrip", false}, {"rstrip", false}, {"normalized", false}};
}

}  // namespace

std::string tiny_tokenizer_json(const std::string& end) {
  using nlohmann::json;
  json vocab = {{"<s>", 0}, {end, 1}};
  json merges = json::array();
  for (char c = '!'; c <= '~'; ++c) vocab[std::string(1, c)] = vocab.size();
  vocab["\u0120"] = vocab.size();  // the byte alphabet's name for a space
  for (char first = 'a'; std::ssize(vocab) < kTinyVocab; ++first) {
    for (char second = 'a'; second <= 'e' && std::ssize(vocab) < kTinyVocab; ++second) {
      merges.push_back({std::string(1, first), std::string(1, second)});
      vocab[cat(first, second)] = vocab.size();
    }
  }
  const json tokenizer = {
      {"added_tokens", {special_token(0, "<s>"), special_token(1, end)}},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single",
         {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
          {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
        {"pair", json::array()},
        {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {0}}, {"tokens", {"<s>"}}}}}}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}},
  };
  return tokenizer.dump();
}

}  // namespace rbee::test
