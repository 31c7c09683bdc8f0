// tokenizer_from_json(): tokenizer.json and its two small companions to a pipeline.

#include <algorithm>

#include "rbee/core/error.h"
#include "rbee/text/bpe.h"
#include "rbee/text/json_components.h"
#include "rbee/text/json_file.h"
#include "rbee/text/pipeline.h"
#include "rbee/text/turn_ends.h"
#include "rbee/text/unigram.h"
#include "rbee/text/wordpiece.h"

namespace rbee::text {
namespace {

constexpr std::string_view kName = "tokenizer.json";
constexpr size_t kMaxAddedBytes = 1024;
constexpr int64_t kMaxHoles = 1 << 20;  // ids without a token that a file may have
constexpr int64_t kMaxWordPieceCharacters = 1000;

JsonField root_of(const TokenizerFile& file) {
  return {file.rest, std::string(kName)};
}

// Highest id that a file with this many tokens may use.
int64_t id_limit(const TokenizerFile& file) {
  return static_cast<int64_t>(file.vocab.size() + file.pieces.size()) + kMaxHoles;
}

// The path is made only for a token that is wrong.
template <typename... Parts>
[[noreturn]] void bad_token(const std::string& text, const Parts&... parts) {
  fail(Code::invalid_argument, cat(kName, ": model.vocab[\"", text, "\"]"), parts...);
}

void add_vocab(const TokenizerFile& file, Vocab& vocab) {
  size_t bytes = 0;
  for (const auto& [text, id] : file.vocab) bytes += text.size();
  for (const auto& [text, score] : file.pieces) bytes += text.size();
  vocab.reserve(file.vocab.size() + file.pieces.size(), bytes);
  const int64_t limit = id_limit(file);
  for (const auto& [text, id] : file.vocab) {
    if (id < 0 || id > limit) bad_token(text, "id ", id, " is out of range");
    if (vocab.find(text)) bad_token(text, "comes twice");
    if (!vocab.add(text, static_cast<TokenId>(id))) {
      bad_token(text, "id ", id, " belongs to \"", vocab.text(static_cast<TokenId>(id)), "\"");
    }
  }
  TokenId next = 0;
  for (const auto& [text, score] : file.pieces) vocab.add(text, next++);
}

std::unique_ptr<Model> bpe_from(const TokenizerFile& file, const JsonField& model, bool byte_level,
                                const Vocab& vocab) {
  BpeOptions options;
  options.unk_token = model.text_or("unk_token", "");
  options.continuing_subword_prefix = model.text_or("continuing_subword_prefix", "");
  options.end_of_word_suffix = model.text_or("end_of_word_suffix", "");
  options.fuse_unk = model.flag_or("fuse_unk", false);
  options.byte_fallback = model.flag_or("byte_fallback", false);
  options.ignore_merges = model.flag_or("ignore_merges", false);
  options.raw_bytes = byte_level;
  return std::make_unique<Bpe>(vocab, file.merges, std::move(options), cat(kName, ": model"));
}

// Bytes can go to the model as they are when each has its letter and nothing else is done to
// letters.
bool takes_raw_bytes(const JsonField& root, const JsonField& model, const Vocab& vocab) {
  return root.has("pre_tokenizer") && ends_with_byte_level(root.at("pre_tokenizer")) &&
         model.text_or("continuing_subword_prefix", "").empty() &&
         model.text_or("end_of_word_suffix", "").empty() && has_byte_alphabet(vocab);
}

std::unique_ptr<Model> unigram_from(const TokenizerFile& file, const JsonField& model,
                                    const Vocab& vocab) {
  std::vector<double> scores;
  scores.reserve(file.pieces.size());
  for (const auto& [text, score] : file.pieces) scores.push_back(score);
  std::optional<TokenId> unk;
  if (model.has("unk_id")) {
    unk = static_cast<TokenId>(
        model.at("unk_id").integer(0, static_cast<int64_t>(scores.size()) - 1));
  }
  std::vector<bool> usable(scores.size(), true);
  return std::make_unique<Unigram>(vocab, std::move(scores), usable, unk,
                                   model.flag_or("byte_fallback", false));
}

std::unique_ptr<Model> wordpiece_from(const JsonField& model, const Vocab& vocab) {
  WordPieceOptions options;
  const std::string unk = model.text_or("unk_token", "[UNK]");
  const auto id = vocab.find(unk);
  check(id.has_value(), cat(model.path(), ".unk_token"), "\"", unk, "\" is not in the vocab");
  options.unk = *id;
  options.continuing_subword_prefix = model.text_or("continuing_subword_prefix", "##");
  options.max_characters =
      model.integer_or("max_input_chars_per_word", 100, 1, kMaxWordPieceCharacters);
  return std::make_unique<WordPiece>(vocab, std::move(options));
}

AddedToken added_token_from(const JsonField& field, int64_t limit) {
  AddedToken token;
  token.content = field.text("content");
  check(!token.content.empty() && token.content.size() <= kMaxAddedBytes,
        cat(field.path(), ".content"), "has ", token.content.size(), " bytes");
  token.id = static_cast<TokenId>(field.at("id").integer(0, limit));
  token.special = field.flag_or("special", false);
  token.single_word = field.flag_or("single_word", false);
  token.lstrip = field.flag_or("lstrip", false);
  token.rstrip = field.flag_or("rstrip", false);
  token.normalized = field.flag_or("normalized", !token.special);
  return token;
}

void add_added_tokens(const TokenizerFile& file, const JsonField& root, PipelineParts& parts) {
  if (!root.has("added_tokens")) return;
  const std::vector<JsonField> items = root.at("added_tokens").items();
  const int64_t limit = id_limit(file) + static_cast<int64_t>(items.size());
  for (const JsonField& item : items) {
    AddedToken token = added_token_from(item, limit);
    if (const auto id = parts.vocab->find(token.content)) {
      token.id = *id;  // the vocabulary's word counts
    } else {
      check(parts.vocab->add(token.content, token.id), cat(item.path(), ".id"), token.id,
            " belongs to \"", parts.vocab->text(token.id), "\"");
    }
    parts.added.push_back(std::move(token));
  }
}

// Turns the tokens that end a turn into special tokens.
void mark_turn_ends(PipelineParts& parts) {
  const auto added = [&parts](TokenId id) {
    return std::ranges::find(parts.added, id, &AddedToken::id);
  };
  const auto is_special = [&](TokenId id) {
    return added(id) != parts.added.end() && added(id)->special;
  };
  for (const TokenId id : find_turn_ends(*parts.vocab, is_special)) {
    if (is_special(id)) continue;
    const auto known = added(id);
    const std::string text(parts.vocab->text(id));
    warn_of_plain_turn_end(text, id);
    if (known == parts.added.end()) {
      parts.added.push_back({.content = text, .id = id, .special = true});
    } else {
      known->special = true;
    }
  }
}

void add_components(const JsonField& root, bool raw_bytes, PipelineParts& parts) {
  if (root.has("normalizer")) parts.normalizer = normalizer_from(root.at("normalizer"));
  if (root.has("pre_tokenizer")) {
    parts.pre_tokenizer = pre_tokenizer_from(root.at("pre_tokenizer"), raw_bytes);
  }
  if (root.has("post_processor")) {
    SpecialFrame frame = post_processor_from(root.at("post_processor"));
    for (const std::vector<TokenId>* ids : {&frame.prefix, &frame.suffix}) {
      for (const TokenId id : *ids) {
        check(parts.vocab->has(id), cat(kName, ": post_processor"), "id ", id, " is no token");
      }
    }
    parts.prefix = std::move(frame.prefix);
    parts.suffix = std::move(frame.suffix);
  }
  if (root.has("decoder")) {
    add_decoder(root.at("decoder"), parts.decoder);
  } else {
    // Without a decoder tokens are joined by spaces.
    parts.decoder.add([](std::string& token) { token.insert(0, 1, ' '); });
    parts.decoder.drop_leading_spaces(1);
  }
}

// A token's text under `key`: a string, or an object with "content".
std::optional<TokenId> named_token(const JsonField& config, const char* key, const Vocab& vocab) {
  if (!config.has(key)) return std::nullopt;
  const JsonField field = config.at(key);
  return vocab.find(field.is_object() ? field.text("content") : field.text());
}

void add_config(std::string_view text, std::string_view name, PipelineParts& parts) {
  if (text.empty()) return;
  const TokenizerFile file = read_tokenizer_file(text, name);
  const JsonField config{file.rest, std::string(name)};
  if (!parts.bos) parts.bos = named_token(config, "bos_token", *parts.vocab);
  if (!parts.eos) parts.eos = named_token(config, "eos_token", *parts.vocab);
}

}  // namespace

std::unique_ptr<Tokenizer> tokenizer_from_json(std::string_view tokenizer_json,
                                               std::string_view tokenizer_config_json,
                                               std::string_view special_tokens_map) {
  const TokenizerFile file = read_tokenizer_file(tokenizer_json, kName);
  const JsonField root = root_of(file);
  const JsonField model = root.at("model");
  PipelineParts parts;
  add_vocab(file, *parts.vocab);
  const std::string type = model_type(file, model);
  bool raw_bytes = false;
  if (type == "BPE") {
    raw_bytes = takes_raw_bytes(root, model, *parts.vocab);
    parts.model = bpe_from(file, model, raw_bytes, *parts.vocab);
  } else if (type == "Unigram") {
    parts.model = unigram_from(file, model, *parts.vocab);
  } else if (type == "WordPiece") {
    parts.model = wordpiece_from(model, *parts.vocab);
  } else {
    fail(Code::unsupported, cat(model.path(), ".type"), "\"", type,
         "\" is not among BPE, Unigram, WordPiece");
  }
  add_added_tokens(file, root, parts);
  mark_turn_ends(parts);
  add_components(root, raw_bytes, parts);
  add_config(tokenizer_config_json, "tokenizer_config.json", parts);
  add_config(special_tokens_map, "special_tokens_map.json", parts);
  return std::make_unique<PipelineTokenizer>(std::move(parts));
}

}  // namespace rbee::text
