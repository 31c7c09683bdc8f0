#include "rbee/engine/gguf_vocab.h"

#include "rbee/core/error.h"

namespace rbee::engine {
namespace {

std::optional<text::TokenId> token_at(const io::Metadata& metadata, std::string_view key) {
  const auto id = metadata.get_i64(key);
  if (!id) return std::nullopt;
  check(*id >= 0 && *id <= INT32_MAX, key, *id, " is no token id");
  return static_cast<text::TokenId>(*id);
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
  }
  if (auto types = metadata.get_ints("tokenizer.ggml.token_type")) {
    vocab.types.assign(types->begin(), types->end());
  }
  if (const auto merges = metadata.get_strings("tokenizer.ggml.merges")) {
    vocab.merges.assign(merges->begin(), merges->end());
  }
  vocab.bos = token_at(metadata, "tokenizer.ggml.bos_token_id");
  if (!vocab.bos) vocab.bos = token_at(metadata, "tokenizer.ggml.cls_token_id");
  vocab.eos = token_at(metadata, "tokenizer.ggml.eos_token_id");
  vocab.eot = token_at(metadata, "tokenizer.ggml.eot_token_id");
  vocab.eom = token_at(metadata, "tokenizer.ggml.eom_token_id");
  vocab.unk = token_at(metadata, "tokenizer.ggml.unknown_token_id");
  vocab.pad = token_at(metadata, "tokenizer.ggml.padding_token_id");
  vocab.sep = token_at(metadata, "tokenizer.ggml.seperator_token_id");  // ggml's own spelling
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
