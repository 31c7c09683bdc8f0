#include "rbee/text/encoder_vocab.h"

#include <algorithm>
#include <utility>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/text/gguf_token_type.h"
#include "rbee/text/json_components.h"
#include "rbee/text/model.h"

namespace rbee::text {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581 for a space
constexpr std::string_view kInner = "##";
constexpr int64_t kLongestWord = 100;  // characters; BERT's own

std::optional<TokenId> id_of(const GgufVocab& vocab, std::string_view text) {
  const auto found = std::ranges::find(vocab.tokens, text);
  if (found == vocab.tokens.end()) return std::nullopt;
  return static_cast<TokenId>(found - vocab.tokens.begin());
}

void add_case(const JsonField& root, GgufVocab& vocab) {
  if (!root.has("normalizer")) no_gguf_form(root, "that WordPiece has no normalizer");
  const JsonField field = root.at("normalizer");
  if (field.type() != "BertNormalizer") {
    no_gguf_form(field, cat("the normalizer ", field.type(), " of WordPiece"));
  }
  for (const char* step : {"clean_text", "handle_chinese_chars"}) {
    if (!field.flag_or(step, true)) no_gguf_form(field, cat(step, " false"));
  }
  vocab.lowercase = field.flag_or("lowercase", true);
  vocab.strip_accents = field.flag_or("strip_accents", *vocab.lowercase);
}

// The steps on white space and characters before a unigram model.
struct UnigramText {
  std::string charsmap;
  bool cut = false;       // white space at the end is cut off
  bool squeezed = false;  // several spaces become one
  bool split = false;     // white space separates words
  bool prefixed = false;  // the mark comes before the first word
};

void add_normalizer(const JsonField& field, UnigramText& text) {
  const std::string type = field.type();
  if (type == "Sequence") {
    for (const JsonField& part : field.at("normalizers").items()) add_normalizer(part, text);
  } else if (type == "Precompiled" && text.charsmap.empty() && !text.squeezed) {
    text.charsmap = charsmap_bytes(field);
  } else if (type == "Strip" && !text.charsmap.empty() && !text.squeezed &&
             !field.flag_or("strip_left", false) && field.flag_or("strip_right", false)) {
    text.cut = true;  // the map makes spaces of all that is white
  } else if (type == "Replace" && field.at("pattern").has("Regex") &&
             field.at("pattern").text("Regex") == " {2,}" &&
             (field.text("content") == " " || field.text("content") == kMark)) {
    text.squeezed = true;
  } else {
    no_gguf_form(field, cat("the normalizer ", type, " of a unigram vocabulary at this place"));
  }
}

void add_pre_tokenizer(const JsonField& field, UnigramText& text) {
  const std::string type = field.type();
  if (type == "Sequence") {
    for (const JsonField& part : field.at("pretokenizers").items()) add_pre_tokenizer(part, text);
  } else if (type == "WhitespaceSplit" && !text.prefixed && !text.charsmap.empty()) {
    text.split = true;  // the map makes spaces of all that is white
  } else if (type == "Metaspace" && field.text_or("replacement", kMark) == kMark) {
    const std::string scheme = field.text_or(
        "prepend_scheme", field.flag_or("add_prefix_space", true) ? "always" : "never");
    text.prefixed = scheme != "never";
  } else {
    no_gguf_form(field, cat("the pre-tokenizer ", type, " of a unigram vocabulary at this place"));
  }
}

UnigramText read_text(const JsonField& root) {
  UnigramText text;
  if (root.has("normalizer")) add_normalizer(root.at("normalizer"), text);
  if (!root.has("pre_tokenizer")) no_gguf_form(root, "that spaces stay as they are");
  add_pre_tokenizer(root.at("pre_tokenizer"), text);
  return text;
}

}  // namespace

void add_word_piece(const JsonField& root, GgufVocab& vocab) {
  const JsonField model = root.at("model");
  if (model.text_or("continuing_subword_prefix", kInner) != kInner) {
    no_gguf_form(model, "another mark within words than \"##\"");
  }
  if (model.integer_or("max_input_chars_per_word", kLongestWord, 1, INT32_MAX) != kLongestWord) {
    no_gguf_form(model, "how long words may be");
  }
  if (!root.has("pre_tokenizer") || root.at("pre_tokenizer").type() != "BertPreTokenizer") {
    no_gguf_form(root, "another pre-tokenizer of WordPiece than BertPreTokenizer");
  }
  add_case(root, vocab);
  vocab.model = "bert";
  vocab.pre = "default";
  vocab.unk = id_of(vocab, model.text_or("unk_token", "[UNK]"));
  // Readers put these around every text by default; the one at the end is the separator.
  vocab.sep = std::exchange(vocab.eos, std::nullopt);
  vocab.add_bos = vocab.add_eos = std::nullopt;
  if (!vocab.bos || !vocab.sep) {
    no_gguf_form(root, "that WordPiece puts nothing before or behind a text");
  }
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    std::string& token = vocab.tokens[id];
    if (vocab.types[id] != kNormalToken) continue;
    const bool inner = token.starts_with(kInner) && token.size() > kInner.size();
    token = inner ? token.substr(kInner.size()) : cat(kMark, token);
  }
}

void add_unigram(const TokenizerFile& file, const JsonField& root, GgufVocab& vocab) {
  const JsonField model = root.at("model");
  UnigramText text = read_text(root);
  vocab.model = "t5";
  vocab.pre = "default";
  vocab.add_space_prefix = text.prefixed;
  vocab.remove_extra_whitespaces = text.squeezed || text.split;
  vocab.precompiled_charsmap = std::move(text.charsmap);
  // Spaces at the begin are one mark either way, which a first word has without them too.
  const bool exact = text.split || (text.cut && text.squeezed && text.prefixed);
  if (!exact) {
    log(LogLevel::warn, "readers of GGUF files treat spaces at the ends of a text otherwise",
        {{"cut there", text.squeezed ? "yes" : "no"}});
  }
  vocab.scores.assign(vocab.tokens.size(), 0);
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    vocab.scores[id] = static_cast<float>(file.pieces[id].second);
  }
  if (model.has("unk_id")) {
    const int64_t last = std::ssize(file.pieces) - 1;
    vocab.unk = static_cast<TokenId>(model.at("unk_id").integer(0, last));
    vocab.types[static_cast<size_t>(*vocab.unk)] = kUnknownToken;
  }
  if (!model.flag_or("byte_fallback", false)) return;
  for (int byte = 0; byte < 256; ++byte) {
    const auto id = id_of(vocab, byte_token(static_cast<uint8_t>(byte)));
    if (id) vocab.types[static_cast<size_t>(*id)] = kByteToken;
  }
}

}  // namespace rbee::text
