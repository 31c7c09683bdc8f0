#include "rbee/engine/common/gguf_vocab.h"

#include <utility>

#include "rbee/core/error.h"
#include "rbee/core/log.h"

namespace rbee::engine {
namespace {

void warn_of_id(std::string_view key, std::string_view why) {
  log(LogLevel::warn, "an id of the file cannot be used and is left out",
      {{"key", std::string(key)}, {"why", std::string(why)}});
}

// The number or the list of numbers under `key`.
std::vector<int64_t> numbers_at(const io::Metadata& metadata, std::string_view key) {
  const io::MetaEntry* entry = metadata.find(key);
  if (entry == nullptr) return {};
  try {
    if (entry->type == io::MetaType::array) return *metadata.get_ints(key);
    return {*metadata.get_i64(key)};
  } catch (const Error& error) {
    warn_of_id(key, error.what());
    return {};
  }
}

// The tokens under `key`. Files write -1, 2^32 - 1 or the number of tokens for "there is none", so
// an id that no token has is left out with a warning.
std::vector<text::TokenId> tokens_at(const io::Metadata& metadata, std::string_view key,
                                     size_t tokens) {
  std::vector<text::TokenId> ids;
  for (const int64_t id : numbers_at(metadata, key)) {
    if (id >= 0 && std::cmp_less(id, tokens)) {
      ids.push_back(static_cast<text::TokenId>(id));
    } else {
      warn_of_id(key, cat(id, " is outside of ", tokens, " tokens"));
    }
  }
  return ids;
}

// Files may have values behind those of the last token.
void drop_surplus(auto& values, size_t tokens) {
  if (values.size() > tokens) values.resize(tokens);
}

void add_ids(const io::Metadata& metadata, text::GgufVocab& vocab) {
  const auto first = [&](std::string_view name) -> std::optional<text::TokenId> {
    const auto ids = tokens_at(metadata, cat("tokenizer.ggml.", name), vocab.tokens.size());
    return ids.empty() ? std::nullopt : std::optional(ids.front());
  };
  vocab.bos = first("bos_token_id");
  if (!vocab.bos) vocab.bos = first("cls_token_id");
  vocab.unk = first("unknown_token_id");
  vocab.pad = first("padding_token_id");
  vocab.sep = first("seperator_token_id");  // ggml's own spelling
  vocab.eot = first("eot_token_id");
  vocab.eom = first("eom_token_id");
  // Behind a gap that a model filled in code comes padding, or the next file.
  for (const char* name :
       {"eos_token_id", "fim_pad_token_id", "fim_rep_token_id", "fim_sep_token_id"}) {
    const auto ids = tokens_at(metadata, cat("tokenizer.ggml.", name), vocab.tokens.size());
    if (!ids.empty() && std::string_view(name) == "eos_token_id") vocab.eos = ids.front();
    vocab.more_ends.insert(vocab.more_ends.end(), ids.begin(), ids.end());
  }
}

}  // namespace

text::GgufVocab gguf_vocab(const io::Metadata& metadata) {
  text::GgufVocab vocab;
  vocab.model = metadata.require_string("tokenizer.ggml.model");
  vocab.pre = metadata.get_string("tokenizer.ggml.pre").value_or("");
  const auto tokens = metadata.get_strings("tokenizer.ggml.tokens");
  check(tokens.has_value(), "gguf", "tokenizer.ggml.tokens is missing");
  vocab.tokens.assign(tokens->begin(), tokens->end());
  if (auto scores = metadata.get_floats("tokenizer.ggml.scores")) {
    vocab.scores = std::move(*scores);
    drop_surplus(vocab.scores, vocab.tokens.size());
  }
  if (auto types = metadata.get_ints("tokenizer.ggml.token_type")) {
    vocab.types.assign(types->begin(), types->end());
    drop_surplus(vocab.types, vocab.tokens.size());
  }
  if (const auto merges = metadata.get_strings("tokenizer.ggml.merges")) {
    vocab.merges.assign(merges->begin(), merges->end());
  }
  add_ids(metadata, vocab);
  vocab.add_bos = metadata.get_bool("tokenizer.ggml.add_bos_token");
  vocab.add_eos = metadata.get_bool("tokenizer.ggml.add_eos_token");
  vocab.add_space_prefix = metadata.get_bool("tokenizer.ggml.add_space_prefix");
  vocab.lowercase = metadata.get_bool("tokenizer.ggml.normalizer.lowercase");
  vocab.strip_accents = metadata.get_bool("tokenizer.ggml.normalizer.strip_accents");
  if (const auto bytes = metadata.get_ints("tokenizer.ggml.precompiled_charsmap")) {
    vocab.precompiled_charsmap.assign(bytes->begin(), bytes->end());
  }
  vocab.special_takes_space = text::is_named_phi3(metadata.get_string("general.name").value_or(""));
  vocab.remove_extra_whitespaces = metadata.get_bool("tokenizer.ggml.remove_extra_whitespaces");
  return vocab;
}

}  // namespace rbee::engine
