// gguf_vocab_from_json(): tokenizer.json as the fields tokenizer.ggml.*. Here the two kinds of BPE
// that decoders use, byte-level and SentencePiece's; encoder_vocab.cc has WordPiece and unigram.

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/text/encoder_vocab.h"
#include "rbee/text/gguf_pre.h"
#include "rbee/text/gguf_token_type.h"
#include "rbee/text/json_components.h"
#include "rbee/text/json_file.h"
#include "rbee/text/model.h"
#include "rbee/text/tokenizer.h"

namespace rbee::text {
namespace {

constexpr std::string_view kName = "tokenizer.json";
constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581 for a space
constexpr int64_t kMaxHoles = 1 << 20;              // ids without a token that a file may have

using Ids = std::unordered_map<std::string_view, TokenId>;

Ids ids_of(const GgufVocab& vocab) {
  Ids ids;
  ids.reserve(vocab.tokens.size());
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    ids.emplace(vocab.tokens[id], static_cast<TokenId>(id));
  }
  return ids;
}

void add_tokens(const TokenizerFile& file, const JsonField& root, GgufVocab& vocab) {
  const auto limit = static_cast<int64_t>(file.vocab.size() + file.pieces.size()) + kMaxHoles;
  const auto place = [&](const std::string& text, int64_t id, int32_t type) {
    check(id >= 0 && id < limit, kName, "the token \"", text, "\" has the id ", id);
    const auto at = static_cast<size_t>(id);
    if (at >= vocab.tokens.size()) {
      vocab.tokens.resize(at + 1);
      vocab.types.resize(at + 1, kUnusedToken);
    }
    const bool same = vocab.types[at] == kUnusedToken || vocab.tokens[at] == text;
    check(same, kName, "the id ", id, " belongs to \"", vocab.tokens[at], "\" and to \"", text,
          "\"");
    vocab.tokens[at] = text;
    vocab.types[at] = type;
  };
  for (const auto& [text, id] : file.vocab) place(text, id, kNormalToken);
  int64_t next = 0;
  for (const auto& [text, score] : file.pieces) place(text, next++, kNormalToken);
  if (root.has("added_tokens")) {
    const Ids ids = ids_of(vocab);
    for (const JsonField& item : root.at("added_tokens").items()) {
      const std::string text = item.text("content");
      const auto known = ids.find(text);  // the vocabulary's id counts
      place(text, known != ids.end() ? known->second : item.at("id").integer(0, limit),
            item.flag_or("special", false) ? kControlToken : kUserDefinedToken);
    }
  }
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    if (vocab.types[id] == kUnusedToken) vocab.tokens[id] = unused_token_text(id);
  }
}

// A token's id under `key`: its text, or an object with "content".
std::optional<TokenId> named_token(const JsonField& config, const char* key, const Ids& ids) {
  if (!config.has(key)) return std::nullopt;
  const JsonField field = config.at(key);
  const auto found = ids.find(field.is_object() ? field.text("content") : field.text());
  if (found == ids.end()) return std::nullopt;
  return found->second;
}

void add_named_tokens(std::string_view text, std::string_view name, const Ids& ids,
                      GgufVocab& vocab) {
  if (text.empty()) return;
  const TokenizerFile file = read_tokenizer_file(text, name);
  const JsonField config{file.rest, std::string(name)};
  const auto add = [&](std::optional<TokenId>& id, const char* key) {
    if (!id) id = named_token(config, key, ids);
  };
  add(vocab.bos, "bos_token");
  add(vocab.eos, "eos_token");
  add(vocab.unk, "unk_token");
  add(vocab.pad, "pad_token");
  add(vocab.sep, "sep_token");
}

void add_frame(const JsonField& root, GgufVocab& vocab) {
  SpecialFrame frame;
  if (root.has("post_processor")) frame = post_processor_from(root.at("post_processor"));
  const auto add = [&](const std::vector<TokenId>& side, std::optional<TokenId>& id,
                       std::optional<bool>& flag, std::string_view which) {
    flag = !side.empty();
    if (side.empty()) return;
    if (!id) id = side.front();
    if (side.size() != 1 || side.front() != *id) no_gguf_form(root.at("post_processor"), which);
  };
  add(frame.prefix, vocab.bos, vocab.add_bos, "that other tokens than one BOS begin a text");
  add(frame.suffix, vocab.eos, vocab.add_eos, "that other tokens than one EOS end a text");
}

// White space beside an added token that belongs to it. GGUF files do not say it; for Phi-3 readers
// know that it is so after special tokens.
void add_stripping(const JsonField& root, GgufVocab& vocab) {
  if (!root.has("added_tokens")) return;
  int64_t left = 0, right = 0, right_as_phi3 = 0;
  for (const JsonField& item : root.at("added_tokens").items()) {
    const bool strips = item.flag_or("rstrip", false);
    left += item.flag_or("lstrip", false);
    right += strips;
    right_as_phi3 += strips && item.flag_or("special", false);
  }
  vocab.special_takes_space = right > 0 && left == 0 && right == right_as_phi3;
  if (left + right == 0 || vocab.special_takes_space) return;
  log(LogLevel::warn, "GGUF files cannot say which tokens take the white space beside them",
      {{"tokens", cat(left + right)}});
}

// Matches are words, and so is what lies between them. Keeping only the matches is the same for the
// known patterns that stand first, which leave nothing between.
bool is_isolated(const JsonField& split, bool first) {
  const std::string behavior = split.text("behavior");
  const bool invert = split.flag_or("invert", false);
  return split.at("pattern").has("Regex") &&
         ((behavior == "Isolated" && !invert) || (behavior == "Removed" && invert && first));
}

// Patterns that cut a text into words, one stage after the other.
void add_patterns(const JsonField& field, std::vector<std::string>& patterns) {
  const std::string type = field.type();
  if (type == "Sequence") {
    for (const JsonField& part : field.at("pretokenizers").items()) add_patterns(part, patterns);
  } else if (type == "ByteLevel") {
    if (field.flag_or("add_prefix_space", true)) {
      no_gguf_form(field, "that byte-level text starts with a space");
    }
    if (field.flag_or("use_regex", true)) patterns.emplace_back(kGpt2Pattern);
  } else if (type == "Digits" && field.flag_or("individual_digits", false)) {
    patterns.emplace_back(R"(\p{N})");
  } else if (type == "Split" && is_isolated(field, patterns.empty())) {
    patterns.push_back(field.at("pattern").text("Regex"));
  } else {
    no_gguf_form(field, cat("the pre-tokenizer ", type));
  }
}

bool normalizes_to_nfc(const JsonField& root) {
  if (!root.has("normalizer")) return false;
  const JsonField field = root.at("normalizer");
  if (field.type() == "NFC") return true;
  if (field.type() != "Sequence" || !field.at("normalizers").items().empty()) {
    no_gguf_form(field, cat("the normalizer ", field.type(), " of a byte-level vocabulary"));
  }
  return false;
}

void add_byte_level(const TokenizerFile& file, const JsonField& root, GgufVocab& vocab) {
  const JsonField model = root.at("model");
  std::vector<std::string> patterns;
  add_patterns(root.at("pre_tokenizer"), patterns);
  const auto name = gguf_pre_name({.patterns = {patterns.begin(), patterns.end()},
                                   .nfc = normalizes_to_nfc(root),
                                   .ignore_merges = model.flag_or("ignore_merges", false)});
  if (!name)
    no_gguf_form(root.at("pre_tokenizer"), "how it cuts text; none of the known names fits");
  vocab.model = "gpt2";
  vocab.pre = *name;
  vocab.merges.reserve(file.merges.size());
  for (const auto& [left, right] : file.merges) vocab.merges.push_back(cat(left, " ", right));
}

// Whether spaces become the mark, and whether one comes before the first word.
struct Spaces {
  bool marked = false;
  bool prefixed = false;
};

void add_spaces_of_normalizer(const JsonField& field, Spaces& spaces) {
  const std::string type = field.type();
  if (type == "Sequence") {
    for (const JsonField& part : field.at("normalizers").items()) {
      add_spaces_of_normalizer(part, spaces);
    }
  } else if (type == "Prepend" && field.text("prepend") == kMark) {
    spaces.prefixed = true;
  } else if (type == "Replace" && field.text("content") == kMark &&
             field.at("pattern").has("String") && field.at("pattern").text("String") == " ") {
    spaces.marked = true;
  } else {
    no_gguf_form(field, cat("the normalizer ", type, " of a SentencePiece vocabulary"));
  }
}

void add_spaces_of_pre_tokenizer(const JsonField& field, Spaces& spaces) {
  const std::string type = field.type();
  if (type == "Metaspace" && !field.flag_or("split", true) &&
      field.text_or("replacement", kMark) == kMark) {
    const std::string scheme = field.text_or(
        "prepend_scheme", field.flag_or("add_prefix_space", true) ? "always" : "never");
    spaces.marked = true;
    spaces.prefixed = scheme != "never";
    if (scheme == "first") {
      log(LogLevel::warn, "readers of GGUF files put a space also after special tokens",
          {{"prepend_scheme", scheme}});
    }
    return;
  }
  // Gemma cuts after spaces, and its normalizer leaves none.
  const bool idle = type == "Split" && spaces.marked && field.at("pattern").has("String") &&
                    field.at("pattern").text("String") == " ";
  if (!idle) no_gguf_form(field, cat("the pre-tokenizer ", type, " of a SentencePiece vocabulary"));
}

// SentencePiece joins the neighbours that make the piece with the best score, tokenizer.json those
// whose pair has the lowest rank. Pieces scored in the order in which pairs first make them give
// the same, and for a file that was made from SentencePiece's model its very scores, when every
// pair of tokens that makes a token is listed, all pairs of one piece in a row.
void add_scores(const TokenizerFile& file, GgufVocab& vocab, const Ids& ids) {
  constexpr float kUnscored = 1;  // real scores are not above 0
  vocab.scores.assign(vocab.tokens.size(), kUnscored);
  int64_t next = 0;
  const auto score = [&](size_t id) { vocab.scores[id] = -static_cast<float>(next++); };
  TokenId last = -1;
  int64_t scattered = 0;
  std::unordered_set<std::string> pairs;
  for (const auto& [left, right] : file.merges) {
    const auto piece = ids.find(left + right);
    check(piece != ids.end(), kName, "the merge of \"", left, "\" and \"", right,
          "\" makes no token");
    const auto id = static_cast<size_t>(piece->second);
    scattered += vocab.scores[id] != kUnscored && piece->second != last;
    if (vocab.scores[id] == kUnscored) score(id);
    last = piece->second;
    pairs.insert(cat(left, " ", right));
  }
  const auto is_text = [&](std::string_view text) {
    const auto found = ids.find(text);
    if (found == ids.end()) return false;
    const int32_t type = vocab.types[static_cast<size_t>(found->second)];
    return type == kNormalToken || type == kUserDefinedToken;
  };
  int64_t unlisted = 0;
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    const bool unscored = vocab.scores[id] == kUnscored;
    if (vocab.types[id] != kNormalToken) {
      // Gemma adds runs of spaces by name; they are merged anyway.
      if (unscored || vocab.types[id] != kUserDefinedToken) vocab.scores[id] = 0;
      continue;
    }
    if (unscored) score(id);
    const std::string_view text = vocab.tokens[id];
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const auto left = text.substr(0, cut), right = text.substr(cut);
      if (is_text(left) && is_text(right)) unlisted += !pairs.contains(cat(left, " ", right));
    }
  }
  if (scattered + unlisted == 0) return;
  log(LogLevel::warn, "the merges are not SentencePiece's; some texts will get other tokens",
      {{"pairs not listed", cat(unlisted)}, {"pairs apart", cat(scattered)}});
}

void add_sentencepiece(const TokenizerFile& file, const JsonField& root, GgufVocab& vocab) {
  const JsonField model = root.at("model");
  if (!model.flag_or("byte_fallback", false)) {
    no_gguf_form(model, "a BPE that is neither byte-level nor falls back to bytes");
  }
  Spaces spaces;
  if (root.has("normalizer")) add_spaces_of_normalizer(root.at("normalizer"), spaces);
  if (root.has("pre_tokenizer")) add_spaces_of_pre_tokenizer(root.at("pre_tokenizer"), spaces);
  if (!spaces.marked) no_gguf_form(root, "that spaces stay as they are");
  vocab.model = "llama";
  vocab.pre = "default";
  vocab.add_space_prefix = spaces.prefixed;
  const Ids ids = ids_of(vocab);
  for (int byte = 0; byte < 256; ++byte) {
    const auto token = ids.find(byte_token(static_cast<uint8_t>(byte)));
    if (token != ids.end()) vocab.types[static_cast<size_t>(token->second)] = kByteToken;
  }
  if (model.has("unk_token")) vocab.unk = named_token(model, "unk_token", ids);
  if (vocab.unk) vocab.types[static_cast<size_t>(*vocab.unk)] = kUnknownToken;
  add_scores(file, vocab, ids);
}

void add_bpe(const TokenizerFile& file, const JsonField& root, GgufVocab& vocab) {
  const JsonField model = root.at("model");
  if (!model.text_or("continuing_subword_prefix", "").empty() ||
      !model.text_or("end_of_word_suffix", "").empty()) {
    no_gguf_form(model, "that words have a prefix or suffix");
  }
  if (root.has("pre_tokenizer") && ends_with_byte_level(root.at("pre_tokenizer"))) {
    add_byte_level(file, root, vocab);
  } else {
    add_sentencepiece(file, root, vocab);
  }
}

}  // namespace

[[noreturn]] void no_gguf_form(const JsonField& field, std::string_view what) {
  fail(Code::unsupported, field.path(), "GGUF files have no way to say ", what);
}

std::string unused_token_text(size_t id) {
  return cat("[PAD", id, "]");
}

GgufVocab gguf_vocab_from_json(std::string_view tokenizer_json,
                               std::string_view tokenizer_config_json,
                               std::string_view special_tokens_map) {
  const TokenizerFile file = read_tokenizer_file(tokenizer_json, kName);
  const JsonField root{file.rest, std::string(kName)};
  const JsonField model = root.at("model");
  const std::string type = model_type(file, model);
  GgufVocab vocab;
  add_tokens(file, root, vocab);
  const Ids ids = ids_of(vocab);
  add_named_tokens(tokenizer_config_json, "tokenizer_config.json", ids, vocab);
  add_named_tokens(special_tokens_map, "special_tokens_map.json", ids, vocab);
  add_frame(root, vocab);
  add_stripping(root, vocab);
  if (type == "WordPiece") {
    add_word_piece(root, vocab);
  } else if (type == "Unigram") {
    add_unigram(file, root, vocab);
  } else if (type == "BPE") {
    add_bpe(file, root, vocab);
  } else {
    no_gguf_form(model, cat("a vocabulary of the type \"", type, "\""));
  }
  return vocab;
}

}  // namespace rbee::text
