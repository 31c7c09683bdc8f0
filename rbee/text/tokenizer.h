#pragma once
// Text to token ids and back. Two sources: Hugging Face's tokenizer.json, and the vocabulary inside
// a GGUF file. The ids are those of Hugging Face `tokenizers` (for GGUF: of the tokenizer.json that
// the file was converted from).
//
// Input need not be valid UTF-8: every maximal broken part becomes U+FFFD first (Unicode 15.0,
// section 3.9, "U+FFFD Substitution of Maximal Subparts"; Python's errors="replace" is the same).

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rbee::text {

using TokenId = int32_t;

struct EncodeOptions {
  bool add_special = true;    // add BOS/EOS as the model's post-processor says
  bool parse_special = true;  // text such as "<|im_end|>" becomes its special token
};

// Immutable after load; threads may share it.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::vector<TokenId> encode(std::string_view text, EncodeOptions options = {}) const = 0;
  // The bytes of a token, perhaps half a character. Gives "" for a special token unless `special`,
  // and for an id outside the vocabulary.
  virtual std::string piece(TokenId id, bool special = false) const = 0;
  virtual int64_t vocab_size() const = 0;  // highest id + 1, added tokens included
  virtual std::optional<TokenId> find(std::string_view token) const = 0;  // exact token text -> id
  virtual bool is_special(TokenId id) const = 0;

  // The whole text of `ids`, valid UTF-8: broken parts become U+FFFD. Removes a leading space that
  // encode() added.
  std::string decode(std::span<const TokenId> ids, bool special = false) const;

  std::optional<TokenId> bos() const { return bos_; }
  std::optional<TokenId> eos() const { return eos_; }
  // Every token that ends a turn (eos, eot, eom, "<end_of_turn>", "<|im_end|>", ...), sorted.
  const std::vector<TokenId>& end_tokens() const { return end_tokens_; }

 protected:
  friend class DecodeStream;
  // Spaces that the decoder removes from the start of a whole text; -1: all at the start of the
  // first token.
  virtual int leading_spaces_dropped() const = 0;

  std::optional<TokenId> bos_;
  std::optional<TokenId> eos_;
  std::vector<TokenId> end_tokens_;
};

// Incremental decode(): the pieces joined are decode(ids) without special tokens, and no piece ends
// inside a character. `tokenizer` must outlive the stream.
class DecodeStream {
 public:
  // kept: gives each token's own piece, even if decode() would drop a space that encode() adds.
  enum class LeadingSpaces : uint8_t { dropped, kept };
  explicit DecodeStream(const Tokenizer& tokenizer, LeadingSpaces spaces = LeadingSpaces::dropped);

  std::string push(TokenId id);
  // The same with the text of a special token.
  std::string push_special(TokenId id);
  std::string flush();  // the rest, U+FFFD for a broken tail; the stream starts over

 private:
  friend class Tokenizer;
  std::string push_bytes(std::string_view bytes);

  int leading_spaces() const;

  const Tokenizer* tokenizer_;
  LeadingSpaces spaces_;
  int spaces_to_drop_;
  std::string pending_;  // start of a character that is not complete yet
};

// tokenizer_json: the text of tokenizer.json. tokenizer_config_json and special_tokens_map: the
// texts of the files of these names, or empty. They name BOS and EOS. Throws invalid_argument
// naming the field ("tokenizer.json: model.merges[17]: ..."), or unsupported naming the component.
std::unique_ptr<Tokenizer> tokenizer_from_json(std::string_view tokenizer_json,
                                               std::string_view tokenizer_config_json = {},
                                               std::string_view special_tokens_map = {});

// The fields tokenizer.ggml.* of a GGUF file, as read.
struct GgufVocab {
  std::string model;  // gpt2 (byte-level BPE), llama (SentencePiece BPE), t5 (unigram),
                      // bert (WordPiece)
  std::string pre;    // name of the pre-tokenizer of gpt2
  std::vector<std::string> tokens;
  std::vector<float> scores;        // empty, or one for each token
  std::vector<int32_t> types;       // empty, or one for each token: 1 normal, 2 unknown, 3 control,
                                    // 4 user-defined, 5 unused, 6 byte
  std::vector<std::string> merges;  // "left right", best first
  std::optional<TokenId> bos, eos, eot, eom, unk, pad, sep;
  std::vector<TokenId> more_ends;  // more tokens that end a turn
  std::optional<bool> add_bos, add_eos, add_space_prefix, remove_extra_whitespaces;
  // For WordPiece. If absent, a vocabulary without capital letters counts as lower-cased, and
  // accents are stripped if it is lower-cased.
  std::optional<bool> lowercase, strip_accents;
  std::string precompiled_charsmap;  // SentencePiece's compiled normalizer, or empty
  // White space after a special token belongs to it. Files do not say so; readers set it if
  // is_named_phi3(general.name).
  bool special_takes_space = false;
};

// Throws invalid_argument naming the field ("tokenizer.ggml.merges[17]: ..."), or unsupported.
std::unique_ptr<Tokenizer> tokenizer_from_gguf(GgufVocab vocab);

// The tokenizer of tokenizer_from_json() in the fields of a GGUF file. Ids without a token get
// unused_token_text(). If GGUF files cannot express a field but readers come close, logs a warning;
// if they do not, throws unsupported naming the field. Also throws invalid_argument.
GgufVocab gguf_vocab_from_json(std::string_view tokenizer_json,
                               std::string_view tokenizer_config_json = {},
                               std::string_view special_tokens_map = {});
// Whether a model's name says that it is a Phi-3, by llama.cpp's rule.
bool is_named_phi3(std::string_view name);
// The text of an id without a token: "[PAD17]".
std::string unused_token_text(size_t id);

}  // namespace rbee::text
