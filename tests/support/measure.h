#pragma once
// Times an implementation on a case, for benchmarks and tools/opcheck.

#include "tests/support/op_table.h"

namespace rbee::harness {

// Seconds for one run: the fastest of several batches after one warm-up run; takes `seconds` in
// all. Outputs are not reset between runs.
double time_one_run(CaseRun& run, int implementation, double seconds);

}  // namespace rbee::harness
