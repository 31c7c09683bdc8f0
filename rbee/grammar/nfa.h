#pragma once
// A rule's tree as an automaton with choices, and that made deterministic. Internal to the folder.

#include <cstdint>
#include <vector>

#include "rbee/grammar/automaton.h"
#include "rbee/grammar/budget.h"

namespace rbee::grammar {

// Lowers the budget and bills the thread's; throws unsupported when one does not do.
void spend(int64_t& budget, const Rule& rule, int64_t amount = 1);

class Nfa {
 public:
  // Builds the rule's automaton. budget: states that may be made, lowered by those that were.
  // Throws unsupported when it does not do.
  Nfa(const Rule& rule, int64_t& budget);

  struct State {
    std::vector<Automaton::ByteEdge> bytes;
    std::vector<Automaton::CallEdge> calls;
    std::vector<int32_t> empty;  // states that are reached without reading
  };
  const State& state(int32_t index) const { return states_[static_cast<size_t>(index)]; }
  int32_t size() const { return static_cast<int32_t>(states_.size()); }
  static constexpr int32_t kStart = 0;
  int32_t end() const { return end_; }

  // `to` is reached from `from` without reading: where the rest of the text is one of `ahead`; or,
  // as `kind` says, with `word` noted of what was read last, or where that was noted.
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
// What is left of AutomatonLimits::max_work and max_edges.
struct DfaBudget {
  int64_t work = AutomatonLimits{}.max_work;
  int64_t edges = AutomatonLimits{}.max_edges;
};
// The first is the start. budget: lowered as spend() does. No edges of `nfa` look ahead.
std::vector<DfaState> determinise(const Nfa& nfa, const Rule& rule, DfaBudget& budget);

}  // namespace rbee::grammar
