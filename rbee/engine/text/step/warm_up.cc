#include "rbee/engine/text/step/warm_up.h"

#include <algorithm>
#include <deque>
#include <vector>

namespace rbee::engine {
namespace {

// Kernels depend on the rows of a step. Beside a whole chunk: a question of a line or two.
constexpr int64_t kShortPrompt = 40;
// What samplers want of a row: the likeliest token at temperature 0, a draw, or, if the device
// cannot draw, some top logits.
enum class Sought : uint8_t { likeliest, draw, top_logits };
constexpr int64_t kSomeTopLogits = 40;

// For the likeliest token, which needs no number.
class AnyDraw final : public DrawForecast {
  void describe(int64_t, DeviceDraws&) const override {}
};

// Evaluates the last `count` tokens of sequences of `length`. The tokens before count as cached;
// the cache's content does not matter.
void run(Stepper& stepper, int64_t length, int64_t count, const WarmUpOptions& options,
         Sought sought = Sought::top_logits, int64_t sequences = 1) {
  std::deque<Sequence> kept;
  std::vector<Stepper::Work> work;
  std::vector<int32_t> rows;
  while (std::ssize(kept) < sequences) {
    Sequence& sequence = kept.emplace_back(stepper.pool());
    sequence.tokens.assign(static_cast<size_t>(length), 0);
    sequence.cached = sequence.draft_cached = length - count;
    work.push_back({&sequence, count});
    rows.push_back(static_cast<int32_t>(std::ssize(kept) * count - 1));
  }
  TopLogitsWanted wanted{.count = 1, .vocab = options.vocab, .scales = {}};
  const std::vector<float> scales(rows.size(), 1);
  const AnyDraw draw;
  if (sought == Sought::top_logits) wanted.count = lead_count(kSomeTopLogits, options.vocab);
  if (sought == Sought::draw) {
    wanted.count = std::min(kDrawnTopLogits, options.vocab);
    wanted.scales = scales;
    wanted.draws = &draw;
  }
  stepper.step(work, rows, wanted);
}

}  // namespace

void warm_up(Stepper& stepper, const Device& device, const WarmUpOptions& options) {
  if (device.host_accessible()) {
    // A CPU loads and captures nothing, and a long prompt would take its time.
    return run(stepper, 1, 1, options);
  }
  const int64_t longest = std::min(options.chunk, options.context);
  // Layers and experts on the CPU would take a CPU's time for each of these steps.
  const bool brief = stepper.has_host_layers() || stepper.has_cpu_moe();
  if (!brief) run(stepper, longest, longest, options);
  run(stepper, std::min(kShortPrompt, longest), std::min(kShortPrompt, longest), options);
  const bool draws = options.draws && device.supports_capture();  // as LlmEngine wants them
  // A captured step serves block tables of one width, a power of two: see Stepper.
  for (const Sought sought : {Sought::likeliest, Sought::draw, Sought::top_logits}) {
    if (sought == Sought::draw && !draws) continue;
    const int64_t last = brief ? stepper.pool().block_size() : options.context;
    for (int64_t length = stepper.pool().block_size(); length < last; length *= 2) {
      run(stepper, length, 1, options, sought);
    }
    run(stepper, std::min(last, options.context), 1, options, sought);
  }
  if (brief) return;
  // As many as there are blocks for: each sequence takes one.
  const int64_t most = std::min(options.sequences, stepper.pool().available());
  for (int64_t n = 2; n <= most; n = captured_sequences(n) + 1) {
    run(stepper, 1, 1, options, draws ? Sought::draw : Sought::top_logits, n);
  }
}

}  // namespace rbee::engine
