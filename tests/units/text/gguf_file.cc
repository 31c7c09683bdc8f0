#include "gguf_file.h"

#include "rbee/io/checkpoint.h"

namespace rbee::text::testing {

GgufVocab read_gguf_vocab(const std::filesystem::path& path) {
  const io::Checkpoint checkpoint = io::Checkpoint::open(path);
  const io::Metadata& metadata = checkpoint.metadata();
  GgufVocab vocab;
  vocab.model = metadata.require_string("tokenizer.ggml.model");
  vocab.pre = metadata.get_string("tokenizer.ggml.pre").value_or("");
  const auto tokens = metadata.get_strings("tokenizer.ggml.tokens").value();
  vocab.tokens.assign(tokens.begin(), tokens.end());
  vocab.scores = metadata.get_floats("tokenizer.ggml.scores").value_or(std::vector<float>());
  const auto types = metadata.get_ints("tokenizer.ggml.token_type").value();
  vocab.types.assign(types.begin(), types.end());
  if (const auto merges = metadata.get_strings("tokenizer.ggml.merges")) {
    vocab.merges.assign(merges->begin(), merges->end());
  }
  const auto id = [&](const char* key) -> std::optional<TokenId> {
    const auto value = metadata.get_i64(key);
    return value ? std::optional(static_cast<TokenId>(*value)) : std::nullopt;
  };
  vocab.bos = id("tokenizer.ggml.bos_token_id");
  vocab.eos = id("tokenizer.ggml.eos_token_id");
  vocab.unk = id("tokenizer.ggml.unknown_token_id");
  vocab.add_bos = metadata.get_bool("tokenizer.ggml.add_bos_token");
  vocab.add_space_prefix = metadata.get_bool("tokenizer.ggml.add_space_prefix");
  return vocab;
}

}  // namespace rbee::text::testing
