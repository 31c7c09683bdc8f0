#pragma once
// A grammar as one deterministic automaton for each rule. Edges are bytes and calls of rules. No
// state is a dead end: every text that it has read can be completed.

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "rbee/grammar/expression.h"
#include "rbee/grammar/text_lengths.h"

namespace rbee::grammar {

struct DfaState;

// A grammar beyond these throws unsupported. They count the states of all rules together.
struct AutomatonLimits {
  int64_t max_rules = 5000;
  int64_t max_expanded = 400'000;  // states before determinisation: repetitions expand
  // Ten for each deterministic state, and one for each state and edge that is visited, even if it
  // leads to a known state: some nanoseconds each.
  int64_t max_work = 20'000'000;
  int64_t max_edges = 2'000'000;  // of deterministic states, 12 bytes each
};

// A count without a limit.
inline constexpr int32_t kManyTimes = std::numeric_limits<int32_t>::max();

class Automaton {
 public:
  struct ByteEdge {
    uint8_t low, high;
    int32_t to;
  };
  // min to max texts of the rule lead to `to`; for a rule with lengths, one text of min to max
  // characters. Counted texts are never empty.
  struct CallEdge {
    int32_t rule;
    int32_t to;
    int32_t min = 1, max = 1;
  };
  struct State {
    std::span<const ByteEdge> bytes;  // in order, without overlaps
    std::span<const CallEdge> calls;
    bool accepting;  // the rule may end here
    // Whether nothing can follow in the rule: then a call need not return here.
    bool last() const { return accepting && bytes.empty() && calls.empty(); }
  };

  // Throws invalid_argument for left recursion and for a grammar without any text, and unsupported
  // beyond the limits. The message names the rule.
  explicit Automaton(const Grammar& grammar, const AutomatonLimits& limits = {});

  int32_t size() const { return static_cast<int32_t>(nodes_.size()); }
  int32_t start(int32_t rule) const { return rules_[static_cast<size_t>(rule)].start; }
  // Null if the rule has no lengths.
  const TextLengths* lengths(int32_t rule) const {
    return rules_[static_cast<size_t>(rule)].lengths.get();
  }
  // The state's rule if it has lengths, else -1.
  int32_t metered(int32_t index) const { return nodes_[static_cast<size_t>(index)].metered; }
  // Whether the next byte begins a character of such a rule.
  bool begins_character(int32_t index) const {
    const RuleStates& rule = rules_[static_cast<size_t>(metered(index))];
    return rule.lengths->begins(index - rule.start);
  }
  // Whether a text of such a rule can end after `need` to `room` more characters.
  bool fits(int32_t index, int32_t need, int32_t room) const {
    const RuleStates& rule = rules_[static_cast<size_t>(metered(index))];
    return rule.lengths->fits(index - rule.start, need, room);
  }
  int32_t root() const { return start(root_); }
  // Whether some state reads a token by its id: see token_bytes.h.
  bool reads_tokens() const { return reads_tokens_; }
  size_t bytes() const {
    size_t lengths = 0;
    for (const RuleStates& rule : rules_) lengths += rule.lengths ? rule.lengths->bytes() : 0;
    return lengths + nodes_.size() * sizeof(Node) + bytes_.size() * sizeof(ByteEdge) +
           calls_.size() * sizeof(CallEdge);
  }
  State state(int32_t index) const {
    const Node& node = nodes_[static_cast<size_t>(index)];
    return {.bytes = {bytes_.data() + node.bytes, node.byte_count},
            .calls = {calls_.data() + node.calls, node.call_count},
            .accepting = node.accepting};
  }
  // The state after a byte, or -1.
  int32_t next(int32_t index, uint8_t byte) const {
    for (const ByteEdge& edge : state(index).bytes) {
      if (byte <= edge.high) return byte >= edge.low ? edge.to : -1;
    }
    return -1;
  }

 private:
  struct Node {
    uint32_t bytes = 0, calls = 0;  // where the edges begin
    uint32_t byte_count = 0, call_count = 0;
    bool accepting = false;
    int32_t metered = -1;  // the rule, if it has lengths
  };
  struct RuleStates {
    int32_t start;
    std::shared_ptr<const TextLengths> lengths;
  };

  void add_rule(const std::vector<DfaState>& states, const Rule& rule);

  std::vector<bool> that_can_end(bool by_bytes) const;
  void remove_dead_ends(const Grammar& grammar);
  void refuse_left_recursion(const Grammar& grammar) const;
  std::vector<int32_t> first_calls(int32_t rule, const std::vector<bool>& nullable) const;

  std::vector<Node> nodes_;
  std::vector<ByteEdge> bytes_;
  std::vector<CallEdge> calls_;
  std::vector<RuleStates> rules_;
  int32_t root_;
  bool reads_tokens_ = false;
};

}  // namespace rbee::grammar
