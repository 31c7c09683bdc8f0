#pragma once
// Answers that have to have a form: grammars made ready for a model's vocabulary, and one answer's
// way through its grammar.

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

// Makes grammars, and keeps those that were used last, as many as the bytes allow. Others are freed
// with their last answer. Thread-safe.
class ConstraintCompiler {
 public:
  // tokenizer: outlives it. ends: tokens that end an answer. vocab: tokens that logits are of.
  // cache_bytes: grammars and masks that are kept.
  ConstraintCompiler(const text::Tokenizer& tokenizer, std::vector<text::TokenId> ends,
                     int64_t vocab, int64_t cache_bytes);

  // Null for a form that binds nothing. Throws invalid_argument or unsupported: the message names
  // the kind, and the place in its text; out_of_memory while answers follow too many others; and
  // cancelled, see core/cancel.h.
  std::shared_ptr<const grammar::CompiledGrammar> compile(const AnswerForm& form);
  // Keeps none of those that are there; what answers follow is freed with the last of these.
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
  std::list<Kept> kept_;  // the one used last comes first
  std::shared_ptr<const grammar::Vocabulary> vocabulary_;
};

// Throws as compile() does, without a model: what is wrong with the constraint's text.
// writer: of characters, for Kind::regex and lark alone. tokens: for Kind::grammar.
grammar::Grammar to_grammar(const Constraint& constraint, const grammar::CharWriter& writer = {},
                            const grammar::TokenReader& tokens = {});

// How far an answer is in its grammar.
class ConstrainedText {
 public:
  explicit ConstrainedText(std::shared_ptr<const grammar::CompiledGrammar> grammar);
  // A token of mask(), which has to be found anew then. Throws unsupported as Matcher::accept().
  void accept(int32_t id);
  // Finds mask(), and pays for what accept() took first. work: as TokenMasks::add() has it. False
  // when it did not do, and more is to be given. Throws unsupported where no token of the
  // vocabulary goes on, and where both took the answer too much work.
  bool find_mask(int64_t& work);

  TokenMask mask() const { return {bits_, count_}; }
  bool complete() const { return matcher_.complete(); }    // the answer may end here
  bool can_go_on() const { return matcher_.can_go_on(); }  // something may follow

 private:
  grammar::Matcher matcher_;
  std::vector<uint64_t> bits_;
  int64_t count_ = 0;
  bool found_ = false;  // mask() is the one of the text so far
  int64_t owed_ = 0;    // for what accept() took
  int64_t work_left_;   // of the answer
};

}  // namespace rbee::engine
