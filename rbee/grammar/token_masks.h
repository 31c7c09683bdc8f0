#pragma once
// Finds which tokens of a vocabulary may come at a place of a grammar.
//
// Most of the answer depends only on the state, not on the caller of its rule: tokens that end
// inside the rule fit for every caller. A walk over the vocabulary's tree finds them once for each
// state, and also finds the nodes of the tree at which the rule may end. What follows at these open
// nodes depends on the state to return to. So the mask of a state and its return states is a chain
// of such parts, and each part is cached. The key of a part is the set of open nodes before it and
// the state returned to. So however deep the stack is, there are only as many parts as such pairs,
// and a mask visits each place of a chain once.
//
// The idea of splitting tokens by whether they need the stack: Dong et al. 2024, "XGrammar".

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "rbee/grammar/budget.h"
#include "rbee/grammar/stacks.h"
#include "rbee/grammar/vocabulary.h"

namespace rbee::grammar {

// The progress of the search for one mask. Each mask needs a new one. A copy starts a new search,
// because it belongs to other bits.
struct UnfinishedMask {
  UnfinishedMask() = default;
  UnfinishedMask(const UnfinishedMask& /*other*/) : UnfinishedMask() {}
  UnfinishedMask(UnfinishedMask&&) = default;
  UnfinishedMask& operator=(const UnfinishedMask& other) { return *this = UnfinishedMask(other); }
  UnfinishedMask& operator=(UnfinishedMask&&) = default;
  ~UnfinishedMask() = default;

  uint64_t number = 0;      // of the mask; 0: it is not begun
  uint64_t forgotten = 0;   // how often the cache was emptied before
  size_t place = 0;         // which one of the places
  bool returns = false;     // it is at `next`, not at the place itself
  Place next{-1, kBottom};  // a set of open nodes, and the stack to return to
  PlaceSet seen;            // all `next`
};

class TokenMasks {
 public:
  // automaton and vocabulary must outlive it. memory: shared by grammars; null: its own. max_bytes:
  // of cached parts; above this it drops all.
  TokenMasks(const Automaton& automaton, const Vocabulary& vocabulary,
             std::shared_ptr<GrammarMemory> memory = nullptr, size_t max_bytes = size_t{64} << 20);
  ~TokenMasks();
  TokenMasks(const TokenMasks&) = delete;
  TokenMasks& operator=(const TokenMasks&) = delete;

  // Adds to `bits` (one for each token) the tokens that may come at the places. work: the allowed
  // work, lowered by the work done; a unit is about 8 ns. False if it was not enough: the next call
  // with the same places, bits and mask continues. Throws unsupported if a walk has too many places
  // or a mask too many returns. Thread-safe.
  bool add(std::span<const Place> places, const Stacks& stacks, std::span<uint64_t> bits,
           UnfinishedMask& mask, int64_t& work);
  // Finds the parts of all states, until the work is used up. Thread-safe.
  void prepare(int64_t work);
  // Bytes of the cache.
  size_t bytes() const { return bytes_; }

 private:
  // Tokens, and the set of open nodes. Few tokens are stored as a list, many as bits.
  struct Part {
    std::vector<int32_t> ids;
    std::vector<uint64_t> bits;
    int32_t open = -1;    // index of the set of nodes at which the rule may end; -1: none
    uint64_t joined = 0;  // the last mask to which it was added
  };
  // Sets of places above a bottom that stands for any stack below; made when they are reached.
  struct Set {
    std::vector<Place> places;
    bool ended = false;
    std::vector<int32_t> next;  // by byte; see kUnknown
  };
  struct Level {
    int32_t after;  // the node after the level's last one
    int32_t set;
  };
  // A part whose walk is not finished.
  struct Walk {
    std::vector<int32_t> roots;
    size_t root = 0;  // of `roots`: the next one
    int32_t first_set = 0;
    bool ended = false;  // the rule may end before anything is read
    std::vector<Level> levels;
    int32_t at = 0;
    std::vector<int32_t> ids;
    std::vector<int32_t> open;
  };

  // The key of a part: the open nodes before it, as an index of sets (-1: only the root), and a
  // place or, after the root, a frame to return to. A state of a rule with lengths needs both.
  // Counts of a frame are capped at the longest token, because a token cannot read more.
  struct Key {
    int32_t open;
    int32_t state;
    Frame frame;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return FrameHash()(key.frame) ^ PlaceHash()({key.open, key.state});
    }
  };

  bool add_place(const Place& place, const Stacks& stacks, std::span<uint64_t> bits,
                 UnfinishedMask& mask, int64_t& work);
  Part* part_of_place(const Place& place, const Stacks& stacks, int64_t& work);
  Part* part_of_return(int32_t open, const Frame& frame, int64_t& work);
  // Null if no work is left.
  Part* part_of(const Key& key, int64_t& work);
  Walk begin_walk(const Key& key, int64_t& work);
  void prepare_call(const Automaton::CallEdge& call, int64_t& work);
  bool go_on(Walk& walk, int64_t& work);
  void visit(Walk& walk, int64_t& work);
  Part finish(Walk& walk);
  void join(const Part& part, std::span<uint64_t> bits) const;
  int32_t find_open(std::vector<int32_t> nodes);
  int32_t find_set(std::vector<Place> places, bool ended);
  int32_t next_set(int32_t set, uint8_t byte, int64_t& work);
  void count(int64_t bytes);
  void forget_when_large();
  void forget_sets();

  const Automaton& automaton_;
  const Vocabulary& vocabulary_;
  const std::shared_ptr<GrammarMemory> memory_;
  const size_t max_bytes_;
  std::atomic<size_t> bytes_ = 0;
  std::mutex mutex_;  // guards everything below
  std::unordered_map<Key, Part, KeyHash> parts_;
  std::unordered_map<Key, Walk, KeyHash> walks_;  // not at their ends
  std::map<std::vector<int32_t>, int32_t> open_index_;
  std::vector<const std::vector<int32_t>*> open_sets_;
  uint64_t masks_ = 0;      // that were begun
  uint64_t forgotten_ = 0;  // how often parts were
  Stacks stacks_;
  std::vector<Set> sets_;
  size_t set_bytes_ = 0;
  std::unordered_multimap<uint64_t, int32_t> set_index_;  // by hash
};

}  // namespace rbee::grammar
