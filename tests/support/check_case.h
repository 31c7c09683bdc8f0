#pragma once
// Runs cases and compares: what tests/ops and tools/opcheck have in common.

#include "tests/support/op_table.h"

namespace rbee::harness {

// The case on the CPU with `ref` run once. Throws not_found when the CPU has no ref.
std::unique_ptr<CaseRun> run_reference(const OpCase& c);
// Runs one implementation on fresh outputs.
void run_fresh(CaseRun& run, int implementation);

// The worst output: what the reference computed against the case's formula, and what another
// implementation computed against the reference.
Comparison compare_with_formula(const OpCase& c, CaseRun& reference);
Comparison compare_with_reference(const OpCase& c, CaseRun& run, CaseRun& reference);

}  // namespace rbee::harness
