#pragma once
// Runs and compares cases, for tests/ops and tools/opcheck.

#include "tests/support/op_table.h"

namespace rbee::harness {

// The case on the CPU after one run of `ref`. Throws not_found if the CPU has no ref.
std::unique_ptr<CaseRun> run_reference(const OpCase& c);
// Runs one implementation on fresh outputs.
void run_fresh(CaseRun& run, int implementation);

// The worst output: the reference compared with the case's formula, and another implementation
// compared with the reference.
Comparison compare_with_formula(const OpCase& c, CaseRun& reference);
Comparison compare_with_reference(const OpCase& c, CaseRun& run, CaseRun& reference);

}  // namespace rbee::harness
