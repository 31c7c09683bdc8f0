#pragma once
// Sets of texts, as deterministic automata over bytes: what expressions that call no rules match.
// Internal to the folder.

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "rbee/grammar/nfa.h"

namespace rbee::grammar {

// All of these throw unsupported where an automaton becomes too large.
class TextSet {
 public:
  // name: of messages. expr: without rules. work: steps that may be done, as determinise() has
  // them, lowered by those that were.
  TextSet(const ExprPtr& expr, std::string_view name, int64_t& work);

  // Without calls; edges in order, apart. The first state is the start.
  explicit TextSet(std::vector<DfaState> states) : states_(std::move(states)) {
    remove_dead_ends();
  }

  static TextSet both(const TextSet& a, const TextSet& b, int64_t& work);
  // Of the texts of `a` those that are none of `b`.
  static TextSet without(const TextSet& a, const TextSet& b, int64_t& work);

  bool empty() const { return states_.empty(); }
  bool holds(std::string_view text) const;
  // The state behind a byte, or -1.
  int32_t next(int32_t state, int byte) const;
  const std::vector<DfaState>& states() const { return states_; }  // the first is the start
  // For each state whether all that may follow in texts of `all` leads to texts of the set.
  std::vector<bool> free_states(const TextSet& all) const;
  // Of states i and k, at i * states + k, whether all that may follow i may follow k as well. Empty
  // where there are more than 256 states.
  std::vector<bool> inclusions() const;
  ExprPtr expr() const;
  // Those of min to max characters, some of which there are.
  ExprPtr expr(std::shared_ptr<const TextLengths> lengths, int64_t min, int64_t max) const;

 private:
  TextSet() = default;
  enum class Keep : uint8_t { both, without };
  static TextSet product(const TextSet& a, const TextSet& b, Keep keep, int64_t& work);
  void remove_dead_ends();

  std::vector<DfaState> states_;
};

}  // namespace rbee::grammar
