#pragma once
// Does work before the first request that the first requests would otherwise wait for.

#include "rbee/engine/text/step/stepper.h"

namespace rbee::engine {

struct WarmUpOptions {
  int64_t context = 0;    // tokens of the longest sequence
  int64_t chunk = 0;      // most prompt tokens of a step
  int64_t sequences = 1;  // most sequences that share a step
  int64_t vocab = 0;      // tokens
  bool draws = true;      // the device draws tokens if it can: see RowsWanted
};

// Evaluates prompts of typical lengths, and steps of one and of several sequences, so that kernels
// are loaded, libraries choose their algorithms, steps are captured, and memory is touched. If the
// CPU computes some layers or experts, it evaluates a short prompt and a token in each way alone.
// It drops the results and leaves the cache as empty as before. Throws what a step throws.
void warm_up(Stepper& stepper, const Device& device, const WarmUpOptions& options);

}  // namespace rbee::engine
