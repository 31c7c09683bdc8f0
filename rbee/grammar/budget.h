#pragma once
// What making one grammar may cost, from the text of its notation to its automaton, and the memory
// that all grammars of a worker share.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace rbee::grammar {

// Bytes that all grammars of a worker take: their automata and masks, and what is being made.
// Beyond `limit` a grammar that takes more than its share forgets its own masks.
struct GrammarMemory {
  std::atomic<int64_t> used{0};
  int64_t limit = int64_t{256} << 20;
};

// A part of it, while it lives.
class UsedMemory {
 public:
  // memory: null: none.
  UsedMemory(std::shared_ptr<GrammarMemory> memory, int64_t bytes);
  ~UsedMemory();
  UsedMemory(const UsedMemory&) = delete;
  UsedMemory& operator=(const UsedMemory&) = delete;

 private:
  const std::shared_ptr<GrammarMemory> memory_;
  const int64_t bytes_;
};

// Work is in steps of some nanoseconds, up to 20 each.
struct Cost {
  int64_t work = 0;
  int64_t bytes = 0;
};

inline constexpr Cost kGrammarBudget{.work = 60'000'000, .bytes = int64_t{64} << 20};

// While it lives, its thread makes grammars at its cost. An inner one takes from the outer one.
class Budget {
 public:
  // memory: outlives it; null: nobody else's.
  explicit Budget(Cost limit = kGrammarBudget, GrammarMemory* memory = nullptr);
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // What was billed, bytes without those that were given back.
  Cost spent() const { return spent_; }

 private:
  friend void bill(Cost cost);

  Budget* const outer_;
  const Cost limit_;
  GrammarMemory* const memory_;
  Cost spent_;
  int64_t look_at_ = 0;  // work at which cancelling is looked for again
};

// Takes from the thread's budget, where it has one. Throws unsupported when it does not do, and
// cancelled when nobody waits for the thread's work any more.
void bill(Cost cost);

// Bytes of something that is needed for a while, given back with it.
class HeldBytes {
 public:
  HeldBytes() = default;
  ~HeldBytes() { bill({.work = 0, .bytes = -bytes_}); }
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

  void add(size_t bytes);

 private:
  int64_t bytes_ = 0;
};

}  // namespace rbee::grammar
