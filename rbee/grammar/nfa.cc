#include "rbee/grammar/nfa.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <utility>

#include "rbee/core/error.h"
#include "rbee/grammar/budget.h"
#include "rbee/grammar/text_set.h"
#include "rbee/grammar/token_bytes.h"

namespace rbee::grammar {
namespace {

using States = std::vector<int32_t>;  // sorted

constexpr int64_t kStateWork = 20;
constexpr int64_t kLookWork = 2;
// Of a state with choices: with an edge of each of two kinds.
constexpr size_t kStateBytes = sizeof(Nfa::State) + 64;

struct StatesHash {
  size_t operator()(const States& states) const {
    uint64_t out = 0;
    for (const int32_t state : states) {
      out = (out ^ static_cast<uint32_t>(state)) * 0x9E3779B97F4A7C15u;
      out ^= out >> 29;
    }
    return static_cast<size_t>(out);
  }
};

class Determiniser {
 public:
  Determiniser(const Nfa& nfa, const Rule& rule, DfaBudget& budget)
      : nfa_(nfa), rule_(rule), budget_(budget), rounds_(static_cast<size_t>(nfa.size())) {}

  std::vector<DfaState> run() {
    find({Nfa::kStart});
    for (size_t i = 0; i < sets_.size(); ++i) {
      DfaState state;
      state.accepting = std::ranges::binary_search(*sets_[i], nfa_.end());
      add_bytes(*sets_[i], state);
      add_calls(*sets_[i], state);
      states_.push_back(std::move(state));
    }
    return std::move(states_);
  }

 private:
  // The states that are reached without reading, sorted.
  States close(States states) {
    ++round_;
    States out;
    out.reserve(states.size());
    int64_t looks = 0;
    while (!states.empty()) {
      const int32_t at = states.back();
      states.pop_back();
      ++looks;
      if (std::exchange(rounds_[static_cast<size_t>(at)], round_) == round_) continue;
      out.push_back(at);
      const std::vector<int32_t>& empty = nfa_.state(at).empty;
      states.insert(states.end(), empty.begin(), empty.end());
    }
    spend(budget_.work, rule_, kLookWork * looks);
    std::sort(out.begin(), out.end());
    return out;
  }

  // The deterministic state of a set.
  int32_t find(States states) {
    const auto [at, fresh] =
        index_.try_emplace(close(std::move(states)), static_cast<int32_t>(sets_.size()));
    if (fresh) {
      spend(budget_.work, rule_, kStateWork + std::ssize(at->first));
      held_.add(sizeof(*at) + sizeof(DfaState) + at->first.size() * sizeof(int32_t));
      sets_.push_back(&at->first);
    }
    return at->second;
  }

  // Bytes between two borders of ranges lead to the same states.
  void add_bytes(const States& set, DfaState& state) {
    std::vector<Automaton::ByteEdge> edges;
    std::vector<int> borders;
    for (const int32_t at : set) {
      for (const Automaton::ByteEdge& edge : nfa_.state(at).bytes) {
        edges.push_back(edge);
        borders.push_back(edge.low);
        borders.push_back(edge.high + 1);
      }
    }
    std::sort(borders.begin(), borders.end());
    borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
    for (size_t i = 0; i + 1 < borders.size(); ++i) {
      spend(budget_.work, rule_, std::ssize(edges));
      States to;
      for (const Automaton::ByteEdge& edge : edges) {
        if (edge.low <= borders[i] && borders[i] <= edge.high) to.push_back(edge.to);
      }
      if (to.empty()) continue;
      const int32_t target = find(std::move(to));
      const auto low = static_cast<uint8_t>(borders[i]);
      const auto high = static_cast<uint8_t>(borders[i + 1] - 1);
      const bool joins = !state.bytes.empty() && state.bytes.back().to == target &&
                         state.bytes.back().high + 1 == low;
      if (joins) {
        state.bytes.back().high = high;
      } else {
        spend(budget_.edges, rule_);
        held_.add(2 * sizeof(Automaton::ByteEdge));  // here and in what is made of it
        state.bytes.push_back({low, high, target});
      }
    }
  }

  void add_calls(const States& set, DfaState& state) {
    std::map<std::array<int32_t, 3>, States> targets;  // by rule, min and max
    for (const int32_t at : set) {
      spend(budget_.work, rule_, std::ssize(nfa_.state(at).calls));
      for (const Automaton::CallEdge& edge : nfa_.state(at).calls) {
        targets[{edge.rule, edge.min, edge.max}].push_back(edge.to);
      }
    }
    for (auto& [called, to] : targets) {
      spend(budget_.edges, rule_);
      const auto [rule, min, max] = called;
      state.calls.push_back({.rule = rule, .to = find(std::move(to)), .min = min, .max = max});
    }
  }

  const Nfa& nfa_;
  const Rule& rule_;
  DfaBudget& budget_;
  std::vector<uint32_t> rounds_;  // of close(), that saw the state last
  uint32_t round_ = 0;
  std::unordered_map<States, int32_t, StatesHash> index_;
  std::vector<const States*> sets_;
  std::vector<DfaState> states_;
  HeldBytes held_;
};

}  // namespace

void spend(int64_t& budget, const Rule& rule, int64_t amount) {
  bill({.work = amount});
  budget -= amount;
  if (budget < 0) {
    fail(Code::unsupported, "grammar", "it becomes too large (in the rule ", rule.name,
         "): fewer or smaller repetitions and alternatives are needed");
  }
}

Nfa::Nfa(const Rule& rule, int64_t& budget) : rule_(rule), budget_(budget) {
  add_state();
  end_ = build(*rule.body, kStart);
}

int32_t Nfa::add_state() {
  spend(budget_, rule_);
  held_.add(kStateBytes);
  states_.emplace_back();
  return static_cast<int32_t>(states_.size() - 1);
}

// Returns the state after the expression. No edge leads back to `from`.
int32_t Nfa::build(const Expr& expr, int32_t from) {
  switch (expr.kind) {
    case Expr::Kind::literal:
      return build_literal(expr, from);
    case Expr::Kind::chars:
      return build_chars(expr, from);
    case Expr::Kind::tokens:
      return build_tokens(expr, from);
    case Expr::Kind::rule: {
      const int32_t to = add_state();
      states_[static_cast<size_t>(from)].calls.push_back({.rule = expr.rule, .to = to});
      return to;
    }
    case Expr::Kind::counted:
      return build_counted(expr, from);
    case Expr::Kind::sequence:
      for (const ExprPtr& part : expr.parts) from = build(*part, from);
      return from;
    case Expr::Kind::choice:
      return build_choice(expr, from);
    case Expr::Kind::repeat:
      return build_repeat(expr, from);
    case Expr::Kind::texts:
      return build_texts(expr, from);
    case Expr::Kind::ahead:
    case Expr::Kind::mark:
    case Expr::Kind::behind:
      return build_ahead(expr, from);
  }
  return from;
}

int32_t Nfa::build_literal(const Expr& expr, int32_t from) {
  for (const char c : expr.bytes) {
    const int32_t to = add_state();
    const auto byte = static_cast<uint8_t>(c);
    states_[static_cast<size_t>(from)].bytes.push_back({byte, byte, to});
    from = to;
  }
  return from;
}

int32_t Nfa::build_chars(const Expr& expr, int32_t from) {
  const int32_t end = add_state();
  for (const CharRange& range : expr.ranges) {
    for (const ByteRanges& bytes : utf8_ranges(range)) build_bytes(bytes, from, end);
  }
  return end;
}

int32_t Nfa::build_tokens(const Expr& expr, int32_t from) {
  const int32_t end = add_state();
  for (const CharRange& range : expr.ranges) {
    for (const ByteRanges& bytes : token_ranges(range)) build_bytes(bytes, from, end);
  }
  return end;
}

void Nfa::build_bytes(const ByteRanges& bytes, int32_t from, int32_t to) {
  for (int i = 0; i < bytes.count; ++i) {
    const int32_t next = i + 1 == bytes.count ? to : add_state();
    const ByteRange& part = bytes.parts[static_cast<size_t>(i)];
    states_[static_cast<size_t>(from)].bytes.push_back({part.low, part.high, next});
    from = next;
  }
}

int32_t Nfa::build_choice(const Expr& expr, int32_t from) {
  const int32_t end = add_state();
  for (const ExprPtr& part : expr.parts) link(build(*part, from), end);
  return end;
}

int32_t Nfa::build_repeat(const Expr& expr, int32_t from) {
  const Expr& part = *expr.parts.front();
  for (int64_t i = 0; i < expr.min; ++i) {
    spend(budget_, rule_);  // parts may be empty
    from = build(part, from);
  }
  if (expr.max == kUnlimited) {
    const int32_t again = add_state();
    link(from, again);
    link(build(part, again), again);
    const int32_t end = add_state();
    link(again, end);
    return end;
  }
  const int32_t end = add_state();
  for (int64_t i = expr.min; i < expr.max; ++i) {
    spend(budget_, rule_);
    link(from, end);
    from = build(part, from);
  }
  link(from, end);
  return end;
}

int32_t Nfa::build_counted(const Expr& expr, int32_t from) {
  const int32_t to = add_state();
  const auto most = static_cast<int32_t>(std::min<int64_t>(expr.max, kManyTimes));
  states_[static_cast<size_t>(from)].calls.push_back(
      {.rule = expr.rule,
       .to = to,
       .min = static_cast<int32_t>(expr.min),
       .max = expr.max == kUnlimited ? kManyTimes : most});
  return to;
}

int32_t Nfa::build_texts(const Expr& expr, int32_t from) {
  RB_ASSERT(!expr.lengths);  // with_counters() has taken it out
  const std::vector<DfaState>& states = expr.set->states();
  const int32_t first = size();
  for (size_t i = 0; i < states.size(); ++i) add_state();
  const int32_t end = add_state();
  if (!states.empty()) link(from, first);
  for (size_t i = 0; i < states.size(); ++i) {
    const int32_t at = first + static_cast<int32_t>(i);
    for (const Automaton::ByteEdge& edge : states[i].bytes) {
      states_[static_cast<size_t>(at)].bytes.push_back({edge.low, edge.high, first + edge.to});
    }
    if (states[i].accepting) link(at, end);
  }
  return end;
}

int32_t Nfa::build_ahead(const Expr& expr, int32_t from) {
  const int32_t to = add_state();
  aheads_.push_back({from, to, expr.kind, expr.ahead.get(), expr.word});
  return to;
}

std::vector<DfaState> determinise(const Nfa& nfa, const Rule& rule, DfaBudget& budget) {
  RB_ASSERT(nfa.aheads().empty());
  return Determiniser(nfa, rule, budget).run();
}

}  // namespace rbee::grammar
