#pragma once
// A text that is read by a grammar, token by token, and the tokens that may come next.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rbee/grammar/stacks.h"
#include "rbee/grammar/token_masks.h"

namespace rbee::grammar {

// A grammar made ready for a vocabulary. Shared between matchers and threads.
class CompiledGrammar {
 public:
  // memory: of all grammars; null: its own. Throws as Automaton does.
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
  // Taken by the automaton and the masks that are kept.
  size_t bytes() const { return automaton_.bytes() + masks_.bytes(); }

 private:
  const Automaton automaton_;
  const UsedMemory used_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
  mutable TokenMasks masks_;  // what it keeps is no part of its value
};

class Matcher {
 public:
  explicit Matcher(std::shared_ptr<const CompiledGrammar> grammar);

  // Goes on by the bytes of a token. False, and nothing changes, when the grammar does not allow
  // them. Throws unsupported when the text can be read in too many ways.
  bool accept(std::string_view bytes);
  // Of a token; one that ends the text is accepted where the text may end.
  bool accept_token(int32_t id);
  bool complete() const { return complete_; }          // the text may end here
  bool can_go_on() const { return !places_.empty(); }  // some byte may follow
  // Places that reading has looked at so far: what it costs, some 150 ns each.
  int64_t visited() const { return stacks_.visited(); }

  // Sets `bits` ((vocabulary + 63) / 64 words) to the tokens that may come next; returns how many.
  // work: as TokenMasks::add() has it; nullopt when it did not do: the next call, with the same
  // bits, goes on there.
  std::optional<int64_t> fill(std::span<uint64_t> bits, int64_t& work);

 private:
  std::shared_ptr<const CompiledGrammar> grammar_;
  Stacks stacks_;
  std::vector<Place> places_;
  bool complete_ = false;
  UnfinishedMask mask_;
};

}  // namespace rbee::grammar
