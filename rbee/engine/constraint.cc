#include "rbee/engine/constraint.h"

#include <algorithm>

#include "rbee/core/error.h"
#include "rbee/grammar/gbnf.h"
#include "rbee/grammar/json_schema.h"
#include "rbee/grammar/lark.h"

namespace rbee::engine {
namespace {

constexpr size_t kKept = 32;
// Nodes of the vocabulary's tree that are visited ahead; some tens of milliseconds.
constexpr int64_t kStepsAhead = 4'000'000;

}  // namespace

grammar::Grammar to_grammar(const Constraint& constraint, const grammar::CharWriter& writer) {
  switch (constraint.kind) {
    case Constraint::Kind::json_schema:
      return grammar::parse_json_schema(constraint.text);
    case Constraint::Kind::grammar:
      return grammar::parse_gbnf(constraint.text);
    case Constraint::Kind::regex:
      return {.rules = {{"regex", grammar::parse_regex("regex", constraint.text, writer)}},
              .root = 0};
    case Constraint::Kind::lark:
      return grammar::parse_lark(constraint.text, writer);
    case Constraint::Kind::choice: {
      std::vector<grammar::ExprPtr> ways;
      for (const std::string& text : constraint.choices) ways.push_back(grammar::literal(text));
      return {.rules = {{"choice", grammar::choice(std::move(ways))}}, .root = 0};
    }
    case Constraint::Kind::json_object:
    case Constraint::Kind::none:
      break;
  }
  return grammar::json_object_grammar();
}

ConstraintCompiler::ConstraintCompiler(const text::Tokenizer& tokenizer,
                                       std::vector<text::TokenId> ends, int64_t vocab)
    : tokenizer_(tokenizer), ends_(std::move(ends)), vocab_(vocab) {}

std::shared_ptr<const grammar::CompiledGrammar> ConstraintCompiler::compile(
    const AnswerForm& form) {
  if (!form.binds()) return nullptr;
  if (Compiled known = find(form)) return known;
  // Without the lock: others' grammars are found meanwhile.
  auto made = std::make_shared<const grammar::CompiledGrammar>(
      answer_grammar(form, [this](std::string_view text) { return is_special(text); }),
      vocabulary());
  made->masks().prepare(kStepsAhead);
  const std::scoped_lock lock(mutex_);
  kept_.push_front({form, made});
  if (kept_.size() > kKept) kept_.pop_back();
  return made;
}

bool ConstraintCompiler::is_special(std::string_view text) const {
  const auto id = tokenizer_.find(text);
  return id && tokenizer_.is_special(*id);
}

ConstraintCompiler::Compiled ConstraintCompiler::find(const AnswerForm& form) {
  const std::scoped_lock lock(mutex_);
  const auto at = std::ranges::find(kept_, form, &Kept::form);
  if (at == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, at);
  return at->grammar;
}

// Made with the first grammar: most workers never need it.
std::shared_ptr<const grammar::Vocabulary> ConstraintCompiler::vocabulary() {
  const std::scoped_lock lock(mutex_);
  if (!vocabulary_) {
    std::vector<std::string> tokens(static_cast<size_t>(vocab_));
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto id = static_cast<text::TokenId>(i);
      tokens[i] = tokenizer_.is_special(id) ? kSpecialByte + tokenizer_.piece(id, true)
                                            : tokenizer_.piece(id);
    }
    vocabulary_ = std::make_shared<const grammar::Vocabulary>(tokens, ends_);
  }
  return vocabulary_;
}

ConstrainedText::ConstrainedText(std::shared_ptr<const grammar::CompiledGrammar> grammar)
    : matcher_(grammar), bits_((static_cast<size_t>(grammar->vocabulary().size()) + 63) / 64) {
  update();
}

void ConstrainedText::accept(int32_t id) {
  if (!matcher_.accept_token(id)) {
    fail(Code::internal, "grammar", "token ", id, " was drawn but is not allowed");
  }
  update();
}

void ConstrainedText::update() {
  count_ = matcher_.fill(bits_);
  if (count_ > 0 || !matcher_.can_go_on()) return;
  fail(Code::unsupported, "grammar",
       "no token of the model's vocabulary continues the text as the grammar wants it");
}

}  // namespace rbee::engine
