#pragma once
// A grammar as one deterministic automaton for each rule, over bytes and over rules that are
// called. No state of it is a dead end: whatever text it has read, some text completes it.

#include <cstdint>
#include <span>
#include <vector>

#include "rbee/grammar/expression.h"

namespace rbee::grammar {

// More throw unsupported. The states are of all rules together.
struct AutomatonLimits {
  int64_t max_rules = 5000;
  int64_t max_expanded = 400'000;  // states before they are made deterministic: repetitions expand
  // Ten for each deterministic state, and one for each state and edge that is looked at, also where
  // that leads to what is known: some nanoseconds each.
  int64_t max_work = 40'000'000;
  int64_t max_edges = 2'000'000;  // of deterministic states, 12 bytes each
};

class Automaton {
 public:
  struct ByteEdge {
    uint8_t low, high;
    int32_t to;
  };
  // A text of the rule leads to `to`.
  struct CallEdge {
    int32_t rule;
    int32_t to;
  };
  struct State {
    std::span<const ByteEdge> bytes;  // in order, without overlaps
    std::span<const CallEdge> calls;
    bool accepting;  // the rule may end here
    // Where nothing can follow in the rule: nobody needs to come back here.
    bool last() const { return accepting && bytes.empty() && calls.empty(); }
  };

  // Throws invalid_argument for left recursion, and where no text at all fits; unsupported beyond
  // the limits. The message names the rule.
  explicit Automaton(const Grammar& grammar, const AutomatonLimits& limits = {});

  int32_t size() const { return static_cast<int32_t>(nodes_.size()); }
  int32_t start(int32_t rule) const { return starts_[static_cast<size_t>(rule)]; }
  int32_t root() const { return start(root_); }
  size_t bytes() const {
    return nodes_.size() * sizeof(Node) + bytes_.size() * sizeof(ByteEdge) +
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
  };

  std::vector<bool> that_can_end(bool by_bytes) const;
  void remove_dead_ends(const Grammar& grammar);
  void refuse_left_recursion(const Grammar& grammar) const;
  std::vector<int32_t> first_calls(int32_t rule, const std::vector<bool>& nullable) const;

  std::vector<Node> nodes_;
  std::vector<ByteEdge> bytes_;
  std::vector<CallEdge> calls_;
  std::vector<int32_t> starts_;  // by rule
  int32_t root_;
};

}  // namespace rbee::grammar
