#include "rbee/grammar/automaton.h"

#include <algorithm>
#include <unordered_set>

#include "rbee/core/error.h"
#include "rbee/grammar/budget.h"
#include "rbee/grammar/counters.h"
#include "rbee/grammar/nfa.h"
#include "rbee/grammar/text_set.h"
#include "rbee/grammar/token_bytes.h"

namespace rbee::grammar {
namespace {

constexpr int64_t kNodeBytes = 150;

}  // namespace

Automaton::Automaton(const Grammar& grammar, const AutomatonLimits& limits) : root_(grammar.root) {
  if (std::ssize(grammar.rules) > limits.max_rules) {
    fail(Code::unsupported, "grammar", "its ", grammar.rules.size(), " rules are more than ",
         limits.max_rules);
  }
  int64_t expanded = limits.max_expanded;
  DfaBudget budget{.work = limits.max_work, .edges = limits.max_edges};
  const Grammar counted = with_counters(grammar);
  for (const Rule& rule : counted.rules) {
    if (rule.body->lengths) {
      add_rule(rule.body->set->states(), rule);
    } else {
      add_rule(determinise(Nfa(rule, expanded), rule, budget), rule);
    }
  }
  remove_dead_ends(counted);
  refuse_left_recursion(counted);
}

void Automaton::add_rule(const std::vector<DfaState>& states, const Rule& rule) {
  // Also lists of what leads where, while dead ends are looked for.
  bill({.work = std::ssize(states), .bytes = std::ssize(states) * kNodeBytes});
  const auto first = static_cast<int32_t>(nodes_.size());
  const auto index = static_cast<int32_t>(rules_.size());
  constexpr auto kToken = static_cast<uint8_t>(kTokenByte);
  const auto add_state = [&](const DfaState& state, bool accepting) {
    nodes_.push_back({.bytes = static_cast<uint32_t>(bytes_.size()),
                      .calls = static_cast<uint32_t>(calls_.size()),
                      .byte_count = static_cast<uint32_t>(state.bytes.size()),
                      .call_count = static_cast<uint32_t>(state.calls.size()),
                      .accepting = accepting,
                      .metered = rule.body->lengths ? index : -1});
    for (const ByteEdge& e : state.bytes) {
      bytes_.push_back({e.low, e.high, first + e.to});
      reads_tokens_ |= e.low <= kToken && kToken <= e.high;
    }
    for (const CallEdge& e : state.calls) {
      calls_.push_back({.rule = e.rule, .to = first + e.to, .min = e.min, .max = e.max});
    }
  };
  for (const DfaState& state : states) add_state(state, state.accepting);
  rules_.push_back({.start = first, .lengths = rule.body->lengths});
  if (rule.never_empty && states.front().accepting) {
    rules_.back().start = size();
    add_state(states.front(), false);
  }
}

// The states from which the end of their rule can be reached: by any text, or by the empty text.
std::vector<bool> Automaton::that_can_end(bool by_bytes) const {
  struct Use {
    int32_t from, to;
  };
  std::vector<std::vector<int32_t>> before(nodes_.size());    // by bytes
  std::vector<std::vector<Use>> uses(rules_.size());          // calls of a rule
  std::vector<std::vector<CallEdge>> returns(nodes_.size());  // by `to`: {rule, from}
  std::vector<std::vector<int32_t>> started(nodes_.size());   // rules that start there
  for (int32_t i = 0; i < size(); ++i) {
    const State at = state(i);
    if (by_bytes) {
      for (const ByteEdge& e : at.bytes) before[static_cast<size_t>(e.to)].push_back(i);
    }
    for (const CallEdge& e : at.calls) {
      uses[static_cast<size_t>(e.rule)].push_back({i, e.to});
      returns[static_cast<size_t>(e.to)].push_back({e.rule, i});
    }
  }
  for (size_t r = 0; r < rules_.size(); ++r) {
    started[static_cast<size_t>(rules_[r].start)].push_back(static_cast<int32_t>(r));
  }
  std::vector<bool> ends(nodes_.size());
  std::vector<int32_t> work;
  const auto mark = [&](int32_t i) {
    if (ends[static_cast<size_t>(i)]) return;
    ends[static_cast<size_t>(i)] = true;
    work.push_back(i);
  };
  for (int32_t i = 0; i < size(); ++i) {
    if (state(i).accepting) mark(i);
  }
  while (!work.empty()) {
    const auto at = static_cast<size_t>(work.back());
    work.pop_back();
    for (const int32_t from : before[at]) mark(from);
    for (const CallEdge& e : returns[at]) {
      if (ends[static_cast<size_t>(start(e.rule))]) mark(e.to);
    }
    for (const int32_t rule : started[at]) {
      for (const Use& use : uses[static_cast<size_t>(rule)]) {
        if (ends[static_cast<size_t>(use.to)]) mark(use.from);
      }
    }
  }
  return ends;
}

void Automaton::remove_dead_ends(const Grammar& grammar) {
  const std::vector<bool> ends = that_can_end(true);
  const auto lives = [&](int32_t i) { return static_cast<bool>(ends[static_cast<size_t>(i)]); };
  const Rule& top = grammar.rules[static_cast<size_t>(root_)];
  check(lives(root()), "grammar", "no text fits it: the rule ", top.name, " never comes to an end");
  for (Node& node : nodes_) {
    const auto bytes = std::span(bytes_).subspan(node.bytes, node.byte_count);
    const auto calls = std::span(calls_).subspan(node.calls, node.call_count);
    node.byte_count -= static_cast<uint32_t>(
        std::ranges::remove_if(bytes, [&](const ByteEdge& e) { return !lives(e.to); }).size());
    node.call_count -= static_cast<uint32_t>(std::ranges::remove_if(calls, [&](const CallEdge& e) {
                                               return !lives(e.to) || !lives(start(e.rule));
                                             }).size());
  }
}

// The rules that a rule calls before it has read a byte.
std::vector<int32_t> Automaton::first_calls(int32_t rule, const std::vector<bool>& nullable) const {
  std::vector<int32_t> out, reached{start(rule)};
  std::unordered_set<int32_t> seen{start(rule)};
  for (size_t i = 0; i < reached.size(); ++i) {
    const State at = state(reached[i]);
    bill({.work = 1 + std::ssize(at.calls)});
    for (const CallEdge& e : at.calls) {
      out.push_back(e.rule);
      const bool passes = nullable[static_cast<size_t>(start(e.rule))];
      if (passes && seen.insert(e.to).second) reached.push_back(e.to);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void Automaton::refuse_left_recursion(const Grammar& grammar) const {
  const std::vector<bool> nullable = that_can_end(false);
  std::vector<std::vector<int32_t>> calls;
  for (size_t r = 0; r < rules_.size(); ++r) {
    calls.push_back(first_calls(static_cast<int32_t>(r), nullable));
  }
  enum class Mark : uint8_t { none, open, done };
  std::vector<Mark> marks(rules_.size());
  struct Place {
    size_t rule;
    size_t next = 0;
  };
  for (size_t r = 0; r < rules_.size(); ++r) {
    if (marks[r] != Mark::none) continue;
    std::vector<Place> path{{r}};
    marks[r] = Mark::open;
    while (!path.empty()) {
      Place& place = path.back();
      if (place.next == calls[place.rule].size()) {
        marks[place.rule] = Mark::done;
        path.pop_back();
        continue;
      }
      const auto called = static_cast<size_t>(calls[place.rule][place.next++]);
      check(marks[called] != Mark::open, "grammar", "the rule ", grammar.rules[called].name,
            " begins with itself (left recursion): write the repetition as ( ... )*");
      if (marks[called] == Mark::done) continue;
      marks[called] = Mark::open;
      path.push_back({called});
    }
  }
}

}  // namespace rbee::grammar
