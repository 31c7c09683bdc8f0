#include "rbee/engine/warm_up.h"

#include <algorithm>

namespace rbee::engine {
namespace {

// Kernels differ by the rows of a step. Beside a whole chunk: a question of a line or two.
constexpr int64_t kShortPrompt = 40;

// Evaluates the last `count` tokens of a sequence of `length`. Those before count as cached: what
// the cache holds there is of no interest.
void run(Stepper& stepper, int64_t length, int64_t count, const WarmUpOptions& options) {
  Sequence sequence(stepper.pool());
  sequence.tokens.assign(static_cast<size_t>(length), 0);
  sequence.cached = length - count;
  const Stepper::Work work[] = {{&sequence, count}};
  const int32_t rows[] = {static_cast<int32_t>(count - 1)};
  stepper.step(work, rows,
               {.count = lead_count(1, options.vocab), .vocab = options.vocab, .scales = {}});
}

}  // namespace

void warm_up(Stepper& stepper, const Device& device, const WarmUpOptions& options) {
  if (!device.supports_capture()) {
    // Nothing is loaded or recorded here, and a long prompt would take its time.
    return run(stepper, 1, 1, options);
  }
  const int64_t longest = std::min(options.chunk, options.context);
  run(stepper, longest, longest, options);
  run(stepper, std::min(kShortPrompt, longest), std::min(kShortPrompt, longest), options);
  // A recorded step serves block tables of one width, a power of two: see Stepper.
  for (int64_t length = stepper.pool().block_size(); length < options.context; length *= 2) {
    run(stepper, length, 1, options);
  }
  run(stepper, options.context, 1, options);
}

}  // namespace rbee::engine
