#pragma once
// The one Tokenizer: added tokens, normalizer, pre-tokenizer, model, post-processor, decoder.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/text/added_tokens.h"
#include "rbee/text/model.h"
#include "rbee/text/normalizer.h"
#include "rbee/text/piece_decoder.h"
#include "rbee/text/pre_tokenizer.h"
#include "rbee/text/tokenizer.h"
#include "rbee/text/vocab.h"

namespace rbee::text {

// What a loader gives. Null: the pipeline skips the step.
struct PipelineParts {
  std::unique_ptr<Vocab> vocab = std::make_unique<Vocab>();  // the added tokens too
  std::unique_ptr<Model> model;
  NormalizerPtr normalizer;
  // Inserted before normalised text at the start of the whole text and after a special token.
  std::string section_prefix;
  PreTokenizerPtr pre_tokenizer;
  PieceDecoder decoder;
  std::vector<AddedToken> added;
  std::vector<TokenId> prefix, suffix;  // of add_special
  std::optional<TokenId> bos, eos;
  std::vector<TokenId> end_tokens;  // in addition to eos and the special tokens known to end a turn
};

class PipelineTokenizer final : public Tokenizer {
 public:
  explicit PipelineTokenizer(PipelineParts parts);

  std::vector<TokenId> encode(std::string_view text, EncodeOptions options) const override;
  std::string piece(TokenId id, bool special) const override;
  int64_t vocab_size() const override { return parts_.vocab->size(); }
  std::optional<TokenId> find(std::string_view token) const override;
  bool is_special(TokenId id) const override;

 protected:
  int leading_spaces_dropped() const override { return parts_.decoder.leading_spaces_dropped(); }

 private:
  struct Run;
  void encode_text(std::string_view text, bool at_start, bool prefixed, Run& run) const;
  void find_end_tokens();

  PipelineParts parts_;
  std::vector<bool> special_;           // by id
  AddedTokenFinder raw_finder_;         // before the normalizer
  AddedTokenFinder normalized_finder_;  // after it
};

}  // namespace rbee::text
