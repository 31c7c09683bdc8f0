#include "rbee/core/launch_trail.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

namespace rbee {
namespace {

// A handler may read a step while a thread writes it: it then tells of one kernel by the other's
// operation, and no more.
struct Step {
  std::atomic<const char*> op = nullptr;  // null: nothing is under way
  std::atomic<const char*> kernel = nullptr;
  std::atomic<const void*> stream = nullptr;
};
static_assert(std::atomic<const char*>::is_always_lock_free &&
              std::atomic<uint64_t>::is_always_lock_free);

constexpr uint64_t kSteps = 32;
constinit std::array<Step, kSteps> steps = {};
constinit std::atomic<uint64_t> queued = 0;

class Line {
 public:
  Line(char* to, size_t room) : to_(to), room_(room) {}
  void add(const char* text) {
    const size_t taken = std::min(std::strlen(text), room_ - used_);
    std::memcpy(to_ + used_, text, taken);
    used_ += taken;
  }
  size_t used() const { return used_; }

 private:
  char* to_;
  size_t room_;
  size_t used_ = 0;
};

}  // namespace

void note_launch(const char* op, const char* kernel, const void* stream) noexcept {
  Step& step = steps[queued.fetch_add(1, std::memory_order_relaxed) % kSteps];
  step.stream.store(stream, std::memory_order_relaxed);
  step.kernel.store(kernel, std::memory_order_relaxed);
  step.op.store(op, std::memory_order_relaxed);
}

void note_end(const void* stream) noexcept {
  for (Step& step : steps) {
    if (step.stream.load(std::memory_order_relaxed) == stream) {
      step.op.store(nullptr, std::memory_order_relaxed);
    }
  }
}

void forget_launches() noexcept {
  for (Step& step : steps) step.op.store(nullptr, std::memory_order_relaxed);
}

size_t describe_launches(char* to, size_t room) noexcept {
  Line line(to, room);
  const uint64_t end = queued.load(std::memory_order_relaxed);
  for (uint64_t i = 0; i < std::min(end, kSteps); ++i) {
    const Step& step = steps[(end - 1 - i) % kSteps];
    const char* op = step.op.load(std::memory_order_relaxed);
    const char* kernel = step.kernel.load(std::memory_order_relaxed);
    if (op == nullptr || kernel == nullptr) continue;
    if (line.used() > 0) line.add(", ");
    line.add(op);
    line.add(" ");
    line.add(kernel);
  }
  return line.used();
}

}  // namespace rbee
