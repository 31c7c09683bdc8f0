// tokenizer_from_gguf(): the fields tokenizer.ggml.* to a pipeline.

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/text/bpe.h"
#include "rbee/text/gguf_pre.h"
#include "rbee/text/gguf_token_type.h"
#include "rbee/text/pipeline.h"
#include "rbee/text/spm.h"
#include "rbee/text/turn_ends.h"
#include "rbee/text/unigram.h"
#include "rbee/text/utf8.h"
#include "rbee/text/wordpiece.h"

namespace rbee::text {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581 for a space
constexpr size_t kMaxAddedBytes = 1024;

void check_id(std::optional<TokenId> id, size_t tokens, std::string_view field) {
  check(!id || (*id >= 0 && static_cast<size_t>(*id) < tokens), field, id.value_or(0),
        " is outside of ", tokens, " tokens");
}

void check_fields(const GgufVocab& vocab) {
  const size_t tokens = vocab.tokens.size();
  check(tokens > 0 && tokens <= INT32_MAX, "tokenizer.ggml.tokens", tokens, " tokens");
  check(vocab.scores.empty() || vocab.scores.size() == tokens, "tokenizer.ggml.scores",
        vocab.scores.size(), " scores for ", tokens, " tokens");
  check(vocab.types.empty() || vocab.types.size() == tokens, "tokenizer.ggml.token_type",
        vocab.types.size(), " types for ", tokens, " tokens");
  for (const float score : vocab.scores) {
    check(score == score, "tokenizer.ggml.scores", "a score is not a number");
  }
  check_id(vocab.bos, tokens, "tokenizer.ggml.bos_token_id");
  check_id(vocab.eos, tokens, "tokenizer.ggml.eos_token_id");
  check_id(vocab.eot, tokens, "tokenizer.ggml.eot_token_id");
  check_id(vocab.eom, tokens, "tokenizer.ggml.eom_token_id");
  check_id(vocab.unk, tokens, "tokenizer.ggml.unknown_token_id");
  check_id(vocab.pad, tokens, "tokenizer.ggml.padding_token_id");
  check_id(vocab.sep, tokens, "tokenizer.ggml.seperator_token_id");
  for (const TokenId id : vocab.more_ends) check_id(id, tokens, "a token that ends a turn");
}

int32_t type_of(const GgufVocab& vocab, size_t id) {
  return vocab.types.empty() ? kNormalToken : vocab.types[id];
}

// Phi-3's special tokens, except those that can start a text or come between texts.
bool takes_space(const GgufVocab& vocab, TokenId id) {
  return vocab.special_takes_space && id != vocab.bos &&
         vocab.tokens[static_cast<size_t>(id)] != "<|endoftext|>";
}

void add_texts(const GgufVocab& vocab, Vocab& texts) {
  size_t bytes = 0;
  for (const std::string& token : vocab.tokens) bytes += token.size();
  texts.reserve(vocab.tokens.size(), bytes);
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    check(utf8_valid(vocab.tokens[i]), "tokenizer.ggml.tokens", "token ", i, " is not UTF-8");
    texts.add(vocab.tokens[i], static_cast<TokenId>(i));
  }
}

// Turns the tokens that end a turn into control tokens.
void mark_turn_ends(const Vocab& texts, GgufVocab& vocab) {
  const auto is_control = [&vocab](TokenId id) {
    return type_of(vocab, static_cast<size_t>(id)) == kControlToken;
  };
  for (const TokenId id : find_turn_ends(texts, is_control)) {
    const auto at = static_cast<size_t>(id);
    if (is_control(id)) continue;
    warn_of_plain_turn_end(vocab.tokens[at], id);
    if (vocab.types.empty()) vocab.types.assign(vocab.tokens.size(), kNormalToken);
    vocab.types[at] = kControlToken;
  }
}

void add_special_tokens(const GgufVocab& vocab, PipelineParts& parts) {
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string& text = vocab.tokens[i];
    const int32_t type = type_of(vocab, i);
    const bool special = type == kControlToken || type == kUnknownToken;
    if ((!special && type != kUserDefinedToken) || text.empty()) continue;
    check(text.size() <= kMaxAddedBytes, "tokenizer.ggml.tokens", "special token ", i, " has ",
          text.size(), " bytes");
    parts.added.push_back({.content = text,
                           .id = id,
                           .special = special,
                           .rstrip = type == kControlToken && takes_space(vocab, id)});
  }
}

// SentencePiece's special tokens, if the file gives no usable id.
void add_usual_ids(const Vocab& texts, GgufVocab& vocab) {
  const auto add = [&](std::optional<TokenId>& id, std::string_view text, int32_t type) {
    const auto found = texts.find(text);
    if (!id && found && type_of(vocab, static_cast<size_t>(*found)) == type) id = found;
  };
  if (vocab.model != "llama" && vocab.model != "t5") return;
  add(vocab.unk, "<unk>", kUnknownToken);
  add(vocab.eos, "</s>", kControlToken);
  if (vocab.model == "llama") add(vocab.bos, "<s>", kControlToken);
}

void add_ends(const GgufVocab& vocab, bool default_bos, bool default_eos, PipelineParts& parts) {
  parts.bos = vocab.bos;
  parts.eos = vocab.eos;
  if (vocab.eot) parts.end_tokens.push_back(*vocab.eot);
  if (vocab.eom) parts.end_tokens.push_back(*vocab.eom);
  parts.end_tokens.insert(parts.end_tokens.end(), vocab.more_ends.begin(), vocab.more_ends.end());
  if (vocab.bos && vocab.add_bos.value_or(default_bos)) parts.prefix.push_back(*vocab.bos);
  if (vocab.eos && vocab.add_eos.value_or(default_eos)) parts.suffix.push_back(*vocab.eos);
}

// As llama.cpp reads them: of equal merges the first holds, and those of texts that are no tokens
// are left out.
std::vector<Bpe::Pair> merges_of(std::vector<std::string>& merges, const Vocab& vocab) {
  std::vector<Bpe::Pair> pairs;
  pairs.reserve(merges.size());
  std::unordered_set<std::string_view> known;
  known.reserve(merges.size());
  std::vector<size_t> left_out;
  for (size_t i = 0; i < merges.size(); ++i) {
    // Neither half is empty, so that the first byte is never the border.
    const size_t space = merges[i].find(' ', 1);
    check(space != std::string::npos && space + 1 < merges[i].size(),
          cat("tokenizer.ggml.merges[", i, "]"), "\"", merges[i], "\" is not two tokens");
    if (!known.insert(merges[i]).second) continue;
    Bpe::Pair pair(merges[i].substr(0, space), merges[i].substr(space + 1));
    if (vocab.find(pair.first) && vocab.find(pair.second) && vocab.find(pair.first + pair.second)) {
      pairs.push_back(std::move(pair));
    } else {
      left_out.push_back(i);
    }
  }
  if (!left_out.empty()) {
    log(LogLevel::warn, "merges of texts that are no tokens are left out",
        {{"merges", cat(left_out.size())}, {"first", merges[left_out.front()]}});
  }
  known.clear();
  merges.clear();
  merges.shrink_to_fit();
  return pairs;
}

void build_bpe(GgufVocab& vocab, const GgufPre& pre, PipelineParts& parts) {
  check(!vocab.merges.empty(), "tokenizer.ggml.merges", "is missing");
  BpeOptions options;
  options.ignore_merges = pre.ignore_merges;
  options.raw_bytes = !pre.plain_text;
  options.byte_fallback = pre.plain_text;
  parts.model = std::make_unique<Bpe>(*parts.vocab, merges_of(vocab.merges, *parts.vocab), options,
                                      "tokenizer.ggml");
  if (pre.nfc) parts.normalizer = unicode_normalizer(UnicodeForm::nfc);
  std::vector<PreTokenizerPtr> stages;
  stages.reserve(pre.patterns.size());
  for (const std::string_view pattern : pre.patterns) {
    stages.push_back(
        regex_pre_tokenizer(pattern, SplitBehavior::isolated, false, "tokenizer.ggml.pre"));
  }
  parts.pre_tokenizer = sequence_pre_tokenizer(std::move(stages));
  if (pre.plain_text) {
    parts.normalizer = replace_normalizer(" ", std::string(kMark));
    parts.decoder.add(replace_in_piece(std::string(kMark), " "));
    parts.decoder.add(byte_fallback());
  } else {
    parts.decoder.add(letters_to_bytes());
  }
  add_ends(vocab, pre.add_bos, false, parts);
}

// What SentencePiece does to a text before its model: the charsmap, spaces, the mark before the
// first word, the mark for spaces.
void add_sentencepiece_steps(const GgufVocab& vocab, bool trim, PipelineParts& parts) {
  std::vector<NormalizerPtr> steps;
  if (!vocab.precompiled_charsmap.empty()) {
    steps.push_back(charsmap_normalizer(
        Charsmap(vocab.precompiled_charsmap, "tokenizer.ggml.precompiled_charsmap")));
  }
  if (vocab.remove_extra_whitespaces.value_or(trim)) {
    steps.push_back(strip_normalizer(true, true));
    steps.push_back(replace_normalizer(Regex(" {2,}", "tokenizer.ggml"), " "));
  }
  steps.push_back(replace_normalizer(" ", std::string(kMark)));
  parts.normalizer = sequence_normalizer(std::move(steps));
  parts.decoder.add(replace_in_piece(std::string(kMark), " "));
  parts.decoder.add(byte_fallback());
  if (vocab.add_space_prefix.value_or(true)) {
    parts.section_prefix = kMark;
    parts.decoder.drop_leading_spaces(1);
  }
}

std::vector<bool> tokens_of_text(const GgufVocab& vocab) {
  std::vector<bool> usable(vocab.tokens.size());
  for (size_t i = 0; i < usable.size(); ++i) {
    const int32_t type = type_of(vocab, i);
    usable[i] = type != kUnknownToken && type != kControlToken && type != kUnusedToken &&
                type != kByteToken;
  }
  return usable;
}

void build_spm(const GgufVocab& vocab, PipelineParts& parts) {
  check(!vocab.scores.empty(), "tokenizer.ggml.scores", "is missing");
  parts.model = std::make_unique<Spm>(*parts.vocab, vocab.scores, tokens_of_text(vocab), vocab.unk);
  add_sentencepiece_steps(vocab, false, parts);
  add_ends(vocab, true, false, parts);
}

void build_unigram(const GgufVocab& vocab, PipelineParts& parts) {
  check(!vocab.scores.empty(), "tokenizer.ggml.scores", "is missing");
  std::vector<double> scores(vocab.scores.begin(), vocab.scores.end());
  const bool finite =
      std::ranges::all_of(scores, [](double score) { return std::isfinite(score); });
  check(finite, "tokenizer.ggml.scores", "a score is infinite");
  const bool has_bytes =
      std::find(vocab.types.begin(), vocab.types.end(), kByteToken) != vocab.types.end();
  parts.model = std::make_unique<Unigram>(*parts.vocab, std::move(scores), tokens_of_text(vocab),
                                          vocab.unk, has_bytes);
  add_sentencepiece_steps(vocab, true, parts);
  add_ends(vocab, false, true, parts);
}

// Files have the tokens that begin a word with the mark before them, and leave "##" out of the
// others.
void restore_word_pieces(GgufVocab& vocab) {
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    std::string& token = vocab.tokens[i];
    const bool named = token.starts_with('[') && token.ends_with(']') && token.size() > 2;
    if (token.starts_with(kMark)) {
      token.erase(0, kMark.size());
    } else if (type_of(vocab, i) == kNormalToken && !named && !token.empty()) {
      token.insert(0, "##");
    }
  }
}

// Older files do not say whether case counts: a vocabulary without a capital letter has none.
bool is_uncased(const GgufVocab& vocab) {
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    const std::string& token = vocab.tokens[i];
    if (type_of(vocab, i) != kNormalToken || token.starts_with('[')) continue;
    if (std::ranges::any_of(token, [](char c) { return c >= 'A' && c <= 'Z'; })) return false;
  }
  return true;
}

void build_word_piece(const GgufVocab& vocab, PipelineParts& parts) {
  const auto id_of = [&](std::optional<TokenId> given, std::string_view text) {
    const auto id = given ? given : parts.vocab->find(text);
    check(id.has_value(), "tokenizer.ggml.tokens", "has no ", text);
    return *id;
  };
  WordPieceOptions options;
  options.unk = id_of(vocab.unk, "[UNK]");
  parts.model = std::make_unique<WordPiece>(*parts.vocab, options);
  const bool uncased = vocab.lowercase ? *vocab.lowercase : is_uncased(vocab);
  parts.normalizer = bert_normalizer(
      {.strip_accents = vocab.strip_accents.value_or(uncased), .lowercase = uncased});
  parts.pre_tokenizer = bert_pre_tokenizer();
  parts.decoder.add(join_word_pieces("##", true));
  parts.decoder.drop_leading_spaces(1);
  parts.bos = id_of(vocab.bos, "[CLS]");
  parts.eos = id_of(vocab.sep, "[SEP]");
  parts.prefix.push_back(*parts.bos);
  parts.suffix.push_back(*parts.eos);
}

}  // namespace

bool is_named_phi3(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower.find("phi-3") != lower.npos || lower.find("phi3") != lower.npos;
}

std::unique_ptr<Tokenizer> tokenizer_from_gguf(GgufVocab vocab) {
  check_fields(vocab);
  PipelineParts parts;
  if (vocab.model == "bert") restore_word_pieces(vocab);
  add_texts(vocab, *parts.vocab);
  mark_turn_ends(*parts.vocab, vocab);
  add_special_tokens(vocab, parts);
  add_usual_ids(*parts.vocab, vocab);
  if (vocab.model == "bert") {
    build_word_piece(vocab, parts);
  } else if (vocab.model == "gpt2") {
    build_bpe(vocab, gguf_pre(vocab.pre), parts);
  } else if (vocab.model == "gemma4") {
    build_bpe(vocab, gguf_pre(vocab.model), parts);
  } else if (vocab.model == "llama") {
    build_spm(vocab, parts);
  } else if (vocab.model == "t5") {
    build_unigram(vocab, parts);
  } else {
    fail(Code::unsupported, "tokenizer.ggml.model", "\"", vocab.model,
         "\" is not among gpt2, gemma4, llama, t5, bert");
  }
  return std::make_unique<PipelineTokenizer>(std::move(parts));
}

}  // namespace rbee::text
