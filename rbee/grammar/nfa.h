#pragma once
// Builds a nondeterministic automaton from a rule's tree, and makes it deterministic. Internal to
// the folder.

#include <cstdint>
#include <vector>

#include "rbee/grammar/automaton.h"
#include "rbee/grammar/budget.h"
#include "rbee/grammar/utf8_ranges.h"

namespace rbee::grammar {

// Lowers the budget and bills the thread's. Throws unsupported if either is exceeded.
void spend(int64_t& budget, const Rule& rule, int64_t amount = 1);

class Nfa {
 public:
  // Builds the rule's automaton. budget: the states that it may make; lowered by those it makes.
  // Throws unsupported if there are more.
  Nfa(const Rule& rule, int64_t& budget);

  struct State {
    std::vector<Automaton::ByteEdge> bytes;
    std::vector<Automaton::CallEdge> calls;
    std::vector<int32_t> empty;  // states reached without reading
  };
  const State& state(int32_t index) const { return states_[static_cast<size_t>(index)]; }
  int32_t size() const { return static_cast<int32_t>(states_.size()); }
  static constexpr int32_t kStart = 0;
  int32_t end() const { return end_; }

  // Leads from `from` to `to` without reading. kind ahead: if the rest of the text is in `ahead`;
  // mark: notes `word` of the last character; behind: if `word` was noted.
  struct AheadEdge {
    int32_t from, to;
    Expr::Kind kind;  // ahead, mark or behind
    const LookAhead* ahead;
    bool word;
  };
  const std::vector<AheadEdge>& aheads() const { return aheads_; }

 private:
  int32_t add_state();
  int32_t build(const Expr& expr, int32_t from);
  int32_t build_literal(const Expr& expr, int32_t from);
  int32_t build_chars(const Expr& expr, int32_t from);
  int32_t build_tokens(const Expr& expr, int32_t from);
  void build_bytes(const ByteRanges& bytes, int32_t from, int32_t to);
  int32_t build_choice(const Expr& expr, int32_t from);
  int32_t build_repeat(const Expr& expr, int32_t from);
  int32_t build_counted(const Expr& expr, int32_t from);
  int32_t build_texts(const Expr& expr, int32_t from);
  int32_t build_ahead(const Expr& expr, int32_t from);
  void link(int32_t from, int32_t to) { states_[static_cast<size_t>(from)].empty.push_back(to); }

  const Rule& rule_;
  int64_t& budget_;
  std::vector<State> states_;
  std::vector<AheadEdge> aheads_;
  HeldBytes held_;
  int32_t end_;
};

// A deterministic state whose edges lead to states of the same list.
struct DfaState {
  std::vector<Automaton::ByteEdge> bytes;
  std::vector<Automaton::CallEdge> calls;
  bool accepting = false;
};
// The rest of AutomatonLimits::max_work and max_edges.
struct DfaBudget {
  int64_t work = AutomatonLimits{}.max_work;
  int64_t edges = AutomatonLimits{}.max_edges;
};
// The first state is the start. Lowers the budget as spend() does. `nfa` must have no lookahead.
std::vector<DfaState> determinise(const Nfa& nfa, const Rule& rule, DfaBudget& budget);

}  // namespace rbee::grammar
