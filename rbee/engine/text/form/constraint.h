#pragma once
// Constrained answers: compiles grammars for a model's vocabulary, and follows one answer through
// its grammar.

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "rbee/engine/api/text.h"
#include "rbee/engine/text/form/answer_grammar.h"
#include "rbee/engine/text/sampling/token_mask.h"
#include "rbee/grammar/gbnf.h"
#include "rbee/grammar/matcher.h"
#include "rbee/grammar/regex.h"
#include "rbee/text/tokenizer.h"

namespace rbee::engine {

// Compiles grammars and caches the most recently used, up to cache_bytes. Others are freed with
// their last answer. Thread-safe.
class ConstraintCompiler {
 public:
  // tokenizer: must outlive this. ends: tokens that end an answer. vocab: columns of the logits.
  // cache_bytes: for cached grammars and their masks.
  ConstraintCompiler(const text::Tokenizer& tokenizer, std::vector<text::TokenId> ends,
                     int64_t vocab, int64_t cache_bytes);

  // Null if the form allows every text. Throws invalid_argument or unsupported (the message names
  // the kind, and the place in its text), out_of_memory while running answers use too many other
  // grammars, and cancelled, see core/cancel.h.
  std::shared_ptr<const grammar::CompiledGrammar> compile(const AnswerForm& form);
  // Empties the cache. A grammar in use is freed with its last answer.
  void forget();

 private:
  using Compiled = std::shared_ptr<const grammar::CompiledGrammar>;
  struct Kept {
    AnswerForm form;
    Compiled grammar;
  };
  std::shared_ptr<const grammar::Vocabulary> vocabulary();
  Compiled find(const AnswerForm& form);
  Compiled make(const AnswerForm& form);
  void forget_oldest();
  bool is_special(std::string_view text) const;
  std::string bytes_of(text::TokenId id) const;
  bool is_end(text::TokenId id) const;
  text::TokenId token_of(std::string_view name) const;
  grammar::ExprPtr read_token(std::string_view name, bool other) const;

  const text::Tokenizer& tokenizer_;
  const std::vector<text::TokenId> ends_;
  const int64_t vocab_;
  const std::shared_ptr<grammar::GrammarMemory> memory_;
  std::mutex mutex_;      // guards everything below
  std::list<Kept> kept_;  // most recently used first
  std::shared_ptr<const grammar::Vocabulary> vocabulary_;
};

// Throws as compile() does for errors in the constraint's text; needs no model. writer: for
// characters of Kind::regex and lark only. tokens: for Kind::grammar.
grammar::Grammar to_grammar(const Constraint& constraint, const grammar::CharWriter& writer = {},
                            const grammar::TokenReader& tokens = {});

// The state of one answer in its grammar.
class ConstrainedText {
 public:
  explicit ConstrainedText(std::shared_ptr<const grammar::CompiledGrammar> grammar);
  // Takes a token of mask(); find_mask() must then run again. Throws unsupported as
  // Matcher::accept().
  void accept(int32_t id);
  // Finds mask(), after paying for accept()'s work. work: as in TokenMasks::add(). False if the
  // work was used up first: call it again with more. Throws unsupported if no token of the
  // vocabulary can follow, or if the answer has taken too much work in all.
  bool find_mask(int64_t& work);

  TokenMask mask() const { return {bits_, count_}; }
  bool complete() const { return matcher_.complete(); }    // the answer may end here
  bool can_go_on() const { return matcher_.can_go_on(); }  // something may follow

 private:
  grammar::Matcher matcher_;
  std::vector<uint64_t> bits_;
  int64_t count_ = 0;
  bool found_ = false;  // mask() belongs to the text so far
  int64_t owed_ = 0;    // work that accept() took
  int64_t work_left_;   // for the rest of the answer
};

}  // namespace rbee::engine
