#pragma once
// Sets of texts as deterministic automata over bytes: the matches of expressions without calls of
// rules. Internal to the folder.

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "rbee/grammar/nfa.h"

namespace rbee::grammar {

// All calls throw unsupported if an automaton becomes too large.
class TextSet {
 public:
  // name: for messages. expr: must not call rules. work: the allowed steps, as in determinise();
  // lowered by the steps done.
  TextSet(const ExprPtr& expr, std::string_view name, int64_t& work);

  // Without calls; edges in order, apart. The first state is the start.
  explicit TextSet(std::vector<DfaState> states) : states_(std::move(states)) {
    remove_dead_ends();
  }

  static TextSet both(const TextSet& a, const TextSet& b, int64_t& work);
  // The texts of `a` that are not in `b`.
  static TextSet without(const TextSet& a, const TextSet& b, int64_t& work);

  bool empty() const { return states_.empty(); }
  bool holds(std::string_view text) const;
  // The state after a byte, or -1.
  int32_t next(int32_t state, int byte) const;
  const std::vector<DfaState>& states() const { return states_; }  // the first is the start
  // For each state, whether everything that may follow in texts of `all` leads to texts of the set.
  std::vector<bool> free_states(const TextSet& all) const;
  // At i * states + k: whether everything that may follow state i may also follow state k. Empty
  // for more than 256 states.
  std::vector<bool> inclusions() const;
  ExprPtr expr() const;
  // The texts of min to max characters; there must be some.
  ExprPtr expr(std::shared_ptr<const TextLengths> lengths, int64_t min, int64_t max) const;

 private:
  TextSet() = default;
  enum class Keep : uint8_t { both, without };
  static TextSet product(const TextSet& a, const TextSet& b, Keep keep, int64_t& work);
  void remove_dead_ends();

  std::vector<DfaState> states_;
};

}  // namespace rbee::grammar
