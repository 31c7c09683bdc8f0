#include "tools/convert/vocab_keys.h"

#include <algorithm>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/engine/text/generation_config.h"
#include "rbee/models/embedding_model.h"
#include "rbee/text/gguf_token_type.h"
#include "rbee/text/tokenizer.h"

namespace rbee::tools {
namespace {

constexpr const char* kOp = "convert";

text::GgufVocab read_vocab(const io::Checkpoint& checkpoint) {
  const auto json = checkpoint.text_file("tokenizer.json");
  if (!json) {
    fail(Code::not_found, kOp, "tokenizer.json is not beside the weights; save the tokenizer in ",
         "its \"fast\" form, or leave the vocabulary out with --no-vocabulary");
  }
  return text::gguf_vocab_from_json(*json,
                                    checkpoint.text_file("tokenizer_config.json").value_or(""),
                                    checkpoint.text_file("special_tokens_map.json").value_or(""));
}

void fill(text::GgufVocab& vocab, int64_t rows) {
  const auto count = static_cast<size_t>(rows);
  check(vocab.tokens.size() <= count, kOp, "tokenizer.json has ", vocab.tokens.size(),
        " tokens, the token table ", rows, " rows");
  vocab.types.resize(count, text::kUnusedToken);
  if (!vocab.scores.empty()) vocab.scores.resize(count, 0);
  for (size_t id = vocab.tokens.size(); id < count; ++id) {
    vocab.tokens.push_back(text::unused_token_text(id));
  }
}

// Tokens that end a turn by the model's config but not by the tokenizer's. GGUF files have room for
// three.
void add_end_tokens(const io::Checkpoint& checkpoint, text::GgufVocab& vocab) {
  std::vector<text::TokenId> wanted;
  for (const char* file : {"generation_config.json", "config.json"}) {
    const auto text = checkpoint.text_file(file);
    if (!text) continue;
    for (const text::TokenId id : engine::end_token_ids(*text, file, std::ssize(vocab.tokens))) {
      if (std::ranges::find(wanted, id) == wanted.end()) wanted.push_back(id);
    }
  }
  if (!vocab.eos && !wanted.empty()) vocab.eos = wanted.front();
  const std::vector<text::TokenId> has = text::tokenizer_from_gguf(vocab)->end_tokens();
  std::erase_if(wanted, [&](text::TokenId id) { return std::ranges::binary_search(has, id); });
  for (std::optional<text::TokenId>* place : {&vocab.eot, &vocab.eom}) {
    if (*place || wanted.empty()) continue;
    *place = wanted.front();
    wanted.erase(wanted.begin());
  }
  if (wanted.empty()) return;
  log(LogLevel::warn, "a GGUF file has no room for so many tokens that end a turn",
      {{"left out", cat(wanted.size())}, {"first", vocab.tokens[static_cast<size_t>(wanted[0])]}});
}

void set_ids(const text::GgufVocab& vocab, io::GgufWriter& writer) {
  const auto set = [&](std::string_view name, const std::optional<text::TokenId>& id) {
    if (id) writer.set_u32(cat("tokenizer.ggml.", name), static_cast<uint32_t>(*id));
  };
  set("bos_token_id", vocab.bos);
  set("eos_token_id", vocab.eos);
  set("eot_token_id", vocab.eot);
  set("eom_token_id", vocab.eom);
  set("unknown_token_id", vocab.unk);
  set("seperator_token_id", vocab.sep);  // ggml's own spelling
  set("padding_token_id", vocab.pad);
}

void set_flags(const text::GgufVocab& vocab, io::GgufWriter& writer) {
  const auto set = [&](std::string_view name, const std::optional<bool>& flag) {
    if (flag) writer.set_bool(cat("tokenizer.ggml.", name), *flag);
  };
  set("add_bos_token", vocab.add_bos);
  set("add_eos_token", vocab.add_eos);
  set("add_space_prefix", vocab.add_space_prefix);
  set("remove_extra_whitespaces", vocab.remove_extra_whitespaces);
  set("normalizer.lowercase", vocab.lowercase);
  set("normalizer.strip_accents", vocab.strip_accents);
}

// The one in a file of its own, else of that name in the tokenizer's config.
std::optional<std::string> read_chat_template(const io::Checkpoint& checkpoint, const char* file,
                                              std::string_view name) {
  if (auto text = checkpoint.text_file(file)) return text;
  const auto config = checkpoint.text_file("tokenizer_config.json");
  return config ? engine::chat_template_of(*config, name) : std::nullopt;
}

// What stands between the texts of a pair: readers know it by the name of the way to cut text, of
// which several stand for the same, by the separator, and of RoBERTa's kind that it comes twice.
void set_pairs(const std::string& architecture, text::GgufVocab& vocab, io::GgufWriter& writer) {
  if (!models::is_encoder(architecture)) return;
  if (!vocab.sep) vocab.sep = vocab.eos;
  if (vocab.pre == "mpt") vocab.pre = "modern-bert";
  if (vocab.pre == "gpt-2") vocab.pre = "roberta-bpe";
  const bool roberta = architecture.ends_with("roberta") || architecture == "camembert";
  if (roberta) writer.set_bool("tokenizer.ggml.add_sep_token", true);
}

}  // namespace

bool set_vocab_keys(const io::Checkpoint& checkpoint, int64_t rows, io::GgufWriter& writer) {
  text::GgufVocab vocab = read_vocab(checkpoint);
  fill(vocab, rows);
  add_end_tokens(checkpoint, vocab);
  set_pairs(checkpoint.architecture(), vocab, writer);
  writer.set_string("tokenizer.ggml.model", vocab.model);
  writer.set_string("tokenizer.ggml.pre", vocab.pre);
  writer.set_strings("tokenizer.ggml.tokens", vocab.tokens);
  if (!vocab.scores.empty()) writer.set_floats("tokenizer.ggml.scores", vocab.scores);
  writer.set_ints("tokenizer.ggml.token_type", vocab.types);
  if (!vocab.precompiled_charsmap.empty()) {
    writer.set_bytes("tokenizer.ggml.precompiled_charsmap", vocab.precompiled_charsmap);
  }
  if (!vocab.merges.empty()) writer.set_strings("tokenizer.ggml.merges", vocab.merges);
  set_ids(vocab, writer);
  set_flags(vocab, writer);
  if (const auto text = read_chat_template(checkpoint, "chat_template.jinja", "default")) {
    writer.set_string("tokenizer.chat_template", *text);
  }
  const char* with_tools = "additional_chat_templates/tool_use.jinja";
  if (const auto text = read_chat_template(checkpoint, with_tools, "tool_use")) {
    writer.set_string("tokenizer.chat_template.tool_use", *text);
  }
  return vocab.special_takes_space;
}

}  // namespace rbee::tools
