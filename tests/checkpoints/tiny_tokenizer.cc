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

std::string tiny_tokenizer_json(const std::string& end, const std::vector<std::string>& marks) {
  using nlohmann::json;
  json vocab = {{"<s>", 0}, {end, 1}};
  json merges = json::array();
  for (char c = '!'; c <= '~'; ++c) vocab[std::string(1, c)] = vocab.size();
  vocab["\u0120"] = vocab.size();  // the byte alphabet's name for a space
  const int64_t pairs_end = kTinyVocab - std::ssize(marks) - (marks.empty() ? 0 : 1);
  for (char first = 'a'; std::ssize(vocab) < pairs_end; ++first) {
    for (char second = 'a'; second <= 'e' && std::ssize(vocab) < pairs_end; ++second) {
      merges.push_back({std::string(1, first), std::string(1, second)});
      vocab[cat(first, second)] = vocab.size();
    }
  }
  if (!marks.empty()) vocab["\u010A"] = vocab.size();  // the name of a line break
  json added = {special_token(0, "<s>"), special_token(1, end)};
  for (const std::string& mark : marks) {
    const auto id = static_cast<int>(vocab.size());
    vocab[mark] = id;
    added.push_back(special_token(id, mark));
  }
  const json tokenizer = {
      {"added_tokens", added},
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
