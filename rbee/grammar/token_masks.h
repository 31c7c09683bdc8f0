#pragma once
// Which tokens of a vocabulary may come at a place of a grammar.
//
// Most of the answer depends on the state alone, not on where its rule was called from: tokens that
// the rest of the rule reads to their end fit anywhere. They are found once for each state, by a
// walk over the vocabulary's tree, together with the nodes of the tree at which the rule may end.
// What follows there depends on the state to return to, so the answer for a state and the states to
// return to is a chain of such parts, each kept for the next time.
//
// The idea of splitting tokens by whether they need the stack: Dong et al. 2024, "XGrammar".

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "rbee/grammar/stacks.h"
#include "rbee/grammar/vocabulary.h"

namespace rbee::grammar {

class TokenMasks {
 public:
  // Both outlive it. max_bytes: of kept parts; when they are more, all are forgotten.
  TokenMasks(const Automaton& automaton, const Vocabulary& vocabulary,
             size_t max_bytes = size_t{64} << 20);

  // Adds to `bits` (one for each token) the tokens that may come at the place. Thread-safe.
  void add(const Place& place, const Stacks& stacks, std::span<uint64_t> bits);
  // Finds the parts of all states, as far as `steps` of work go. Thread-safe.
  void prepare(int64_t steps);

 private:
  // Tokens and what is open. Few tokens are kept as a list, many as bits.
  struct Part {
    std::vector<int32_t> ids;
    std::vector<uint64_t> bits;
    std::vector<int32_t> open;                    // nodes at which the rule may end
    std::unordered_map<int32_t, Part*> returned;  // by state to return to
  };
  // Sets of places above a bottom that stands for whatever is below, made when they are reached.
  struct Set {
    std::vector<Place> places;
    bool ended = false;
    std::vector<int32_t> next;  // by byte; see kUnknown
  };

  Part& part_of(int32_t state);
  Part& returned_part(Part& part, int32_t state);
  Part* make_part(const std::vector<int32_t>& roots, int32_t first_set);
  void walk(int32_t root, int32_t first_set, std::vector<int32_t>& ids, std::vector<int32_t>& open);
  int32_t find_set(std::vector<Place> places, bool ended);
  int32_t next_set(int32_t set, uint8_t byte);
  void forget_when_large();

  const Automaton& automaton_;
  const Vocabulary& vocabulary_;
  const size_t max_bytes_;
  std::mutex mutex_;  // guards everything below
  std::vector<Part*> states_;
  std::vector<std::unique_ptr<Part>> parts_;
  size_t bytes_ = 0;
  int64_t steps_ = 0;  // of all walks
  Stacks stacks_;
  std::vector<Set> sets_;
  std::unordered_multimap<uint64_t, int32_t> set_index_;  // by hash
};

}  // namespace rbee::grammar
