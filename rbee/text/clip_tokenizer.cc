#include "rbee/text/clip_tokenizer.h"

#include "rbee/core/error.h"
#include "rbee/core/json_fault.h"
#include "rbee/text/clip_vocabulary.h"
#include "rbee/text/json_file.h"

namespace rbee::text {
namespace {

using nlohmann::json;

constexpr const char* kBos = "<|startoftext|>";
constexpr const char* kEos = "<|endoftext|>";
constexpr const char* kWords =
    R"(<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)";
constexpr int64_t kMaxTokens = 1 << 16;

// The settings of both small files, the first that has a field counts.
class TokenNames {
 public:
  TokenNames(std::string_view config, std::string_view map) {
    add(config, "tokenizer_config.json");
    add(map, "special_tokens_map.json");
  }

  // A token's text: a string, or an object with "content".
  std::string text(const char* key, std::string_view fallback) const {
    for (const File& file : files_) {
      const JsonField root{file.root, file.name};
      if (!root.has(key)) continue;
      const JsonField field = root.at(key);
      return field.is_object() ? field.text("content") : field.text();
    }
    return std::string(fallback);
  }

  int64_t integer(const char* key, int64_t fallback) const {
    for (const File& file : files_) {
      const auto at = file.root.find(key);
      // A tokenizer without a limit has 1e30 here.
      if (at != file.root.end() && at->is_number() && at->get<double>() >= kMaxTokens) continue;
      const JsonField root{file.root, file.name};
      if (root.has(key)) return root.integer_or(key, fallback, 3, kMaxTokens);
    }
    return fallback;
  }

 private:
  struct File {
    json root;
    std::string name;
  };

  void add(std::string_view text, const char* name) {
    if (!text.empty()) files_.push_back({read_tokenizer_file(text, name).rest, name});
  }

  std::vector<File> files_;
};

json added_token(const std::string& text, const json& vocab) {
  const auto id = vocab.find(text);
  check(id != vocab.end() && id->is_number_integer(), "vocab.json", "it has no token ", text);
  return {{"content", text},      {"id", *id},       {"special", true}, {"normalized", false},
          {"single_word", false}, {"lstrip", false}, {"rstrip", false}};
}

json read_merges(std::string_view text) {
  json merges = json::array();
  for (size_t at = 0, line = 1; at < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view rule = text.substr(at, end - at);
    at = end + 1;
    if (rule.ends_with('\r')) rule.remove_suffix(1);
    if (rule.empty() || (line == 1 && rule.starts_with("#version"))) continue;
    const size_t space = rule.find(' ');
    check(space != rule.npos && space > 0 && space + 1 < rule.size() &&
              rule.find(' ', space + 1) == rule.npos,
          "merges.txt", "line ", line, " is not two pieces with a space between");
    merges.push_back(rule);
  }
  return merges;
}

// As Hugging Face's CLIPTokenizer builds it from the two files.
std::string combine(const ClipTokenizerFiles& files, const TokenNames& names, bool pad_special) {
  const json vocab = json::parse(files.vocab_json, nullptr, false);
  check(!vocab.is_discarded(), "vocab.json", "no JSON: ", json_fault(files.vocab_json));
  check(vocab.is_object(), "vocab.json", "it does not hold an object");
  const std::string bos = names.text("bos_token", kBos), eos = names.text("eos_token", kEos);
  json file;
  file["added_tokens"] = {added_token(bos, vocab), added_token(eos, vocab)};
  // In folders a padding token, "!" in some models, is special in a prompt too. Programs that read
  // single files do not have it so.
  const std::string pad = names.text("pad_token", eos);
  if (pad != eos && pad_special) file["added_tokens"].push_back(added_token(pad, vocab));
  file["normalizer"] = {{"type", "Sequence"},
                        {"normalizers",
                         {{{"type", "NFC"}},
                          {{"type", "Replace"}, {"pattern", {{"Regex", "\\s+"}}}, {"content", " "}},
                          {{"type", "Lowercase"}}}}};
  file["pre_tokenizer"] = {{"type", "Sequence"},
                           {"pretokenizers",
                            {{{"type", "Split"},
                              {"pattern", {{"Regex", kWords}}},
                              {"behavior", "Removed"},
                              {"invert", true}},
                             {{"type", "ByteLevel"},
                              {"add_prefix_space", false},
                              {"trim_offsets", true},
                              {"use_regex", true}}}}};
  file["post_processor"] = {{"type", "RobertaProcessing"},
                            {"sep", {eos, vocab[eos]}},
                            {"cls", {bos, vocab[bos]}},
                            {"trim_offsets", false},
                            {"add_prefix_space", false}};
  file["decoder"] = {{"type", "ByteLevel"},
                     {"add_prefix_space", true},
                     {"trim_offsets", true},
                     {"use_regex", true}};
  file["model"] = {{"type", "BPE"},
                   {"unk_token", names.text("unk_token", eos)},
                   {"continuing_subword_prefix", ""},
                   {"end_of_word_suffix", "</w>"},
                   {"fuse_unk", false},
                   {"vocab", vocab},
                   {"merges", read_merges(files.merges)}};
  return file.dump();
}

TokenId require(const Tokenizer& tokenizer, const std::string& text) {
  const auto id = tokenizer.find(text);
  if (!id) fail(Code::not_found, "CLIP tokenizer", "the vocabulary has no token ", text);
  return *id;
}

}  // namespace

ClipTokenizer clip_tokenizer(const ClipTokenizerFiles& files) {
  const TokenNames names(files.tokenizer_config_json, files.special_tokens_map);
  std::string combined;
  std::string_view text = files.tokenizer_json;
  if (text.empty()) {
    if (files.merges.empty()) {
      fail(Code::not_found, "CLIP tokenizer",
           "neither tokenizer.json nor merges.txt is there; beside a checkpoint in one file "
           "tools/get_clip_vocabulary.sh FOLDER puts the published one");
    }
    const std::string vocab = files.vocab_json.empty() ? clip_vocab_of(files.merges) : "";
    ClipTokenizerFiles known = files;
    if (files.vocab_json.empty()) known.vocab_json = vocab;
    combined = combine(known, names, !files.vocab_json.empty());
    text = combined;
  }
  ClipTokenizer out;
  out.tokenizer = tokenizer_from_json(text, files.tokenizer_config_json, files.special_tokens_map);
  const std::string eos = names.text("eos_token", kEos);
  out.bos = require(*out.tokenizer, names.text("bos_token", kBos));
  out.eos = require(*out.tokenizer, eos);
  out.pad = require(*out.tokenizer, names.text("pad_token", eos));
  out.max_tokens = names.integer("model_max_length", out.max_tokens);
  return out;
}

}  // namespace rbee::text
