#include "rbee/engine/text/form/constraint.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "rbee/core/error.h"
#include "rbee/grammar/json_schema.h"
#include "rbee/grammar/lark.h"
#include "rbee/grammar/token_bytes.h"

namespace rbee::engine {
namespace {

constexpr size_t kKept = 1024;   // grammars, however small they are
constexpr int64_t kShares = 32;  // grammars that fit into the memory at least
// For masks that are found ahead; some tens of milliseconds.
constexpr int64_t kWorkAhead = 4'000'000;
// For all masks of one answer: some seconds.
constexpr int64_t kAnswerWork = 400'000'000;
constexpr int64_t kPlaceWork = 20;  // of a place that reading a token looks at

}  // namespace

grammar::Grammar to_grammar(const Constraint& constraint, const grammar::CharWriter& writer,
                            const grammar::TokenReader& tokens) {
  switch (constraint.kind) {
    case Constraint::Kind::json_schema:
      return grammar::parse_json_schema(constraint.text);
    case Constraint::Kind::grammar:
      return grammar::parse_gbnf(constraint.text, tokens);
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
                                       std::vector<text::TokenId> ends, int64_t vocab,
                                       int64_t cache_bytes)
    : tokenizer_(tokenizer),
      ends_(std::move(ends)),
      vocab_(vocab),
      memory_(std::make_shared<grammar::GrammarMemory>()) {
  memory_->limit = cache_bytes;
}

std::shared_ptr<const grammar::CompiledGrammar> ConstraintCompiler::compile(
    const AnswerForm& form) {
  if (!form.binds()) return nullptr;
  if (Compiled known = find(form)) return known;
  Compiled made = make(form);  // without the lock: others' grammars are found meanwhile
  const std::scoped_lock lock(mutex_);
  kept_.push_front({form, made});
  forget_oldest();
  // What answers follow cannot be forgotten.
  const bool full = memory_->used > memory_->limit;
  if (full && std::cmp_greater(made->bytes(), memory_->limit / kShares)) {
    kept_.pop_front();
    fail(Code::out_of_memory, "grammar", "those of other requests take the ", memory_->limit >> 20,
         " MiB that there are for grammars");
  }
  return made;
}

ConstraintCompiler::Compiled ConstraintCompiler::make(const AnswerForm& form) {
  const grammar::Budget budget(grammar::kGrammarBudget, memory_.get());
  auto out = std::make_shared<const grammar::CompiledGrammar>(
      answer_grammar(
          form, [this](std::string_view text) { return is_special(text); },
          [this](std::string_view name, bool other) { return read_token(name, other); }),
      vocabulary(), memory_);
  out->masks().prepare(kWorkAhead);
  return out;
}

// But the newest.
void ConstraintCompiler::forget_oldest() {
  while (kept_.size() > 1 && (memory_->used > memory_->limit || kept_.size() > kKept)) {
    kept_.pop_back();
  }
}

void ConstraintCompiler::forget() {
  std::list<Kept> freed;  // after the lock
  const std::scoped_lock lock(mutex_);
  freed.swap(kept_);
}

bool ConstraintCompiler::is_special(std::string_view text) const {
  const auto id = tokenizer_.find(text);
  return id && tokenizer_.is_special(*id);
}

std::string ConstraintCompiler::bytes_of(text::TokenId id) const {
  if (tokenizer_.is_special(id)) return kSpecialByte + tokenizer_.piece(id, true);
  // A token of this one byte, which no character has, would begin a special token's name.
  const std::string piece = tokenizer_.piece(id);
  return piece.find(kSpecialByte) == piece.npos ? piece : "";
}

bool ConstraintCompiler::is_end(text::TokenId id) const {
  return std::ranges::find(ends_, id) != ends_.end();
}

// name: <[id]>, or the token's text.
text::TokenId ConstraintCompiler::token_of(std::string_view name) const {
  if (name.starts_with("<[") && name.ends_with("]>")) {
    const std::string_view digits = name.substr(2, name.size() - 4);
    text::TokenId id = -1;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), id);
    if (read.ec == std::errc() && read.ptr == digits.data() + digits.size() && id >= 0 &&
        id < std::min(vocab_, tokenizer_.vocab_size())) {
      return id;
    }
    fail(Code::invalid_argument, "grammar", "the token ", name, " is not from 0 to ",
         std::min(vocab_, tokenizer_.vocab_size()) - 1);
  }
  const auto id = tokenizer_.find(name);
  if (!id) fail(Code::invalid_argument, "grammar", "the model has no token ", name);
  return *id;
}

grammar::ExprPtr ConstraintCompiler::read_token(std::string_view name, bool other) const {
  const text::TokenId id = token_of(name);
  const auto at = static_cast<char32_t>(id);
  if (other) {
    std::vector<grammar::CharRange> ids;
    if (at > 0) ids.push_back({0, at - 1});
    ids.push_back({at + 1, grammar::kMaxTokenId});
    return grammar::tokens(std::move(ids));
  }
  if (is_end(id)) {
    fail(Code::invalid_argument, "grammar", "the token ", name,
         " ends the answer; a grammar has it by coming to its end");
  }
  if (bytes_of(id).empty()) {
    fail(Code::invalid_argument, "grammar", "the token ", name, " has no text");
  }
  return grammar::tokens({{at, at}});
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
      tokens[i] = bytes_of(static_cast<text::TokenId>(i));
    }
    vocabulary_ = std::make_shared<const grammar::Vocabulary>(tokens, ends_);
  }
  return vocabulary_;
}

ConstrainedText::ConstrainedText(std::shared_ptr<const grammar::CompiledGrammar> grammar)
    : matcher_(grammar),
      bits_((static_cast<size_t>(grammar->vocabulary().size()) + 63) / 64),
      work_left_(kAnswerWork) {}

void ConstrainedText::accept(int32_t id) {
  const int64_t before = matcher_.visited();
  if (!matcher_.accept_token(id)) {
    fail(Code::internal, "grammar", "token ", id, " was drawn but is not allowed");
  }
  owed_ += kPlaceWork * (matcher_.visited() - before);
  found_ = false;
}

bool ConstrainedText::find_mask(int64_t& work) {
  if (found_) return true;
  const int64_t before = work;
  const int64_t paid = std::clamp<int64_t>(work, 0, owed_);
  owed_ -= paid;
  work -= paid;
  std::optional<int64_t> count;
  if (owed_ == 0) count = matcher_.fill(bits_, work);
  work_left_ -= before - work;
  if (!count) {
    if (work_left_ > 0) return false;
    fail(Code::unsupported, "grammar",
         "reading the text and finding the tokens that may come next takes too much work: fewer "
         "alternatives and nested rules are needed");
  }
  count_ = *count;
  found_ = true;
  if (count_ > 0 || !matcher_.can_go_on()) return true;
  fail(Code::unsupported, "grammar",
       "no token of the model's vocabulary continues the text as the grammar wants it");
}

}  // namespace rbee::engine
