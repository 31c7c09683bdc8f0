#include "rbee/grammar/budget.h"

#include <utility>

#include "rbee/core/cancel.h"
#include "rbee/core/error.h"

namespace rbee::grammar {
namespace {

constexpr int64_t kWorkBetweenLooks = 100'000;  // about a millisecond

thread_local Budget* budget_of_thread = nullptr;

}  // namespace

UsedMemory::UsedMemory(std::shared_ptr<GrammarMemory> memory, int64_t bytes)
    : memory_(std::move(memory)), bytes_(bytes) {
  if (memory_) memory_->used += bytes_;
}

UsedMemory::~UsedMemory() {
  if (memory_) memory_->used -= bytes_;
}

Budget::Budget(Cost limit, GrammarMemory* memory)
    : outer_(std::exchange(budget_of_thread, this)), limit_(limit), memory_(memory) {}

Budget::~Budget() {
  budget_of_thread = outer_;
  if (memory_ != nullptr) memory_->used -= spent_.bytes;
}

void bill(Cost cost) {
  // All before any refuses: what is given back later was taken from each.
  for (Budget* budget = budget_of_thread; budget != nullptr; budget = budget->outer_) {
    budget->spent_.work += cost.work;
    budget->spent_.bytes += cost.bytes;
    if (budget->memory_ != nullptr && cost.bytes != 0) budget->memory_->used += cost.bytes;
  }
  if (cost.work <= 0 && cost.bytes <= 0) return;
  for (Budget* budget = budget_of_thread; budget != nullptr; budget = budget->outer_) {
    const Cost& spent = budget->spent_;
    if (spent.work > budget->limit_.work || spent.bytes > budget->limit_.bytes) {
      fail(Code::unsupported, "grammar", "making it takes too much ",
           spent.work > budget->limit_.work ? "work" : "memory",
           ": fewer or smaller repetitions, alternatives and rules are needed");
    }
    if (spent.work < budget->look_at_) continue;
    budget->look_at_ = spent.work + kWorkBetweenLooks;
    check_cancelled("grammar");
  }
}

void HeldBytes::add(size_t bytes) {
  bytes_ += static_cast<int64_t>(bytes);
  bill({.work = 0, .bytes = static_cast<int64_t>(bytes)});
}

}  // namespace rbee::grammar
