#pragma once
// What the first requests would wait for, done before there are any.

#include "rbee/engine/text/step/stepper.h"

namespace rbee::engine {

struct WarmUpOptions {
  int64_t context = 0;    // tokens of the longest sequence
  int64_t chunk = 0;      // prompt tokens of a step at most
  int64_t sequences = 1;  // that share a step at most
  int64_t vocab = 0;      // tokens
  bool draws = true;      // tokens are drawn on the device, where it can: see RowsWanted
};

// Evaluates prompts of typical lengths, and steps of a lone sequence and of several: kernels are
// loaded, libraries choose their algorithms, steps are captured, memory is touched. Results are
// dropped; afterwards the cache is as empty as before. Throws what a step throws.
void warm_up(Stepper& stepper, const Device& device, const WarmUpOptions& options);

}  // namespace rbee::engine
