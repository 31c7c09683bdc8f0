#pragma once
// Limits the cost of making one grammar, from its text to its automaton, and the memory of all
// grammars of a worker.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace rbee::grammar {

// The bytes of all grammars of a worker: automata, masks, and grammars in the making. Above
// `limit`, a grammar that uses more than its share drops its own masks.
struct GrammarMemory {
  std::atomic<int64_t> used{0};
  int64_t limit = int64_t{256} << 20;
};

// Counts bytes of it while it lives.
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

// While it lives, its thread's grammars are billed to it. An inner budget also takes from the outer
// one.
class Budget {
 public:
  // memory must outlive the budget; null: not shared.
  explicit Budget(Cost limit = kGrammarBudget, GrammarMemory* memory = nullptr);
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // The billed cost, without bytes that were given back.
  Cost spent() const { return spent_; }

 private:
  friend void bill(Cost cost);

  Budget* const outer_;
  const Cost limit_;
  GrammarMemory* const memory_;
  Cost spent_;
  int64_t look_at_ = 0;  // work at which it checks for cancellation again
};

// Bills the thread's budget, if it has one. Throws unsupported if the budget is exceeded, and
// cancelled if the client has gone.
void bill(Cost cost);

// Bills bytes of a temporary object and gives them back with it.
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
