#pragma once
// Matches a text to a grammar, token by token, and tells which tokens may come next.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rbee/grammar/stacks.h"
#include "rbee/grammar/token_masks.h"

namespace rbee::grammar {

// A grammar compiled for a vocabulary. Matchers and threads share it.
class CompiledGrammar {
 public:
  // memory: shared by all grammars; null: its own. Throws as Automaton does.
  CompiledGrammar(const Grammar& grammar, std::shared_ptr<const Vocabulary> vocabulary,
                  std::shared_ptr<GrammarMemory> memory = nullptr,
                  const AutomatonLimits& limits = {})
      : automaton_(grammar, limits),
        used_(memory, static_cast<int64_t>(automaton_.bytes())),
        vocabulary_(std::move(vocabulary)),
        masks_(automaton_, *vocabulary_, std::move(memory)) {}

  const Automaton& automaton() const { return automaton_; }
  const Vocabulary& vocabulary() const { return *vocabulary_; }
  TokenMasks& masks() const { return masks_; }
  // Bytes of the automaton and the cached masks.
  size_t bytes() const { return automaton_.bytes() + masks_.bytes(); }

 private:
  const Automaton automaton_;
  const UsedMemory used_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
  mutable TokenMasks masks_;  // a cache
};

class Matcher {
 public:
  explicit Matcher(std::shared_ptr<const CompiledGrammar> grammar);

  // Reads the bytes of a token. If the grammar does not allow them, gives false and changes
  // nothing. Throws unsupported if the text can be parsed in too many ways.
  bool accept(std::string_view bytes);
  // Reads a token, by its text and by its id. A token that ends the text is accepted if the text
  // may end here.
  bool accept_token(int32_t id);
  bool complete() const { return complete_; }          // the text may end here
  bool can_go_on() const { return !places_.empty(); }  // some byte may follow
  // Places visited so far: the cost of reading, some 150 ns each.
  int64_t visited() const { return stacks_.visited(); }

  // Sets `bits` ((vocabulary + 63) / 64 words) to the tokens that may come next, and gives their
  // number. work: as in TokenMasks::add(). Gives nullopt if the work was not enough; the next call,
  // with the same bits, continues.
  std::optional<int64_t> fill(std::span<uint64_t> bits, int64_t& work);

 private:
  struct Reading {
    std::vector<Place> places;
    bool complete = false;
  };
  std::optional<Reading> read(std::string_view bytes);
  void take(Reading&& reading);

  std::shared_ptr<const CompiledGrammar> grammar_;
  Stacks stacks_;
  std::vector<Place> places_;
  bool complete_ = false;
  UnfinishedMask mask_;
};

}  // namespace rbee::grammar
