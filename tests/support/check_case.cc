#include "tests/support/check_case.h"

#include <cmath>

namespace rbee::harness {
namespace {

void keep_worst(Comparison& worst, const Comparison& one, size_t output) {
  if (one.worst_excess < worst.worst_excess) return;
  worst = one;
  if (!one.ok) worst.first_failure = cat("output ", output, ", ", one.first_failure);
}

// The type that sets an output's tolerance: a GPU's attention may round f32 queries and weights to
// the type of 16-bit keys and values, and to f16 for 8-bit ones.
DType tolerance_type(const OpCase& c, CaseRun& run, DType output) {
  const bool rounds = c.family == Family::attention && output == DType::f32 &&
                      run.scene().device().id().kind != DeviceKind::cpu;
  if (!rounds) return output;
  const std::set<DType> operands = run.scene().dtypes();
  for (const DType half : {DType::bf16, DType::f16}) {
    if (operands.contains(half)) return half;
  }
  const bool narrow = operands.contains(DType::f8e4m3) || operands.contains(DType::q8_0);
  if (narrow) return DType::f16;
  return output;
}

// Bounds of sums are relative to the largest result, which is no sum if it was clamped.
void check_not_cut_off(const OpCase& c, const HostArray& want, DType dtype) {
  const bool sums = c.family == Family::product || c.family == Family::rounded_product ||
                    c.family == Family::quant_product || c.family == Family::quant_gate;
  if (!sums || dtype != DType::f8e4m3) return;
  for (const double x : want.values) {
    check(!(std::fabs(x) > 448), "compare_with_formula", c.name, " has a sum of ", x,
          ", and e4m3 ends at 448");
  }
}

}  // namespace

void run_fresh(CaseRun& run, int implementation) {
  run.scene().reset();
  run.run(implementation);
}

std::unique_ptr<CaseRun> run_reference(const OpCase& c) {
  std::unique_ptr<CaseRun> run = c.set_up(*all_devices().front());
  const int ref = find_implementation(*run, "ref");
  if (ref < 0) fail(Code::not_found, "run_reference", "the CPU has no ref");
  run_fresh(*run, ref);
  return run;
}

Comparison compare_with_formula(const OpCase& c, CaseRun& reference) {
  const std::vector<HostArray> want = c.formula(reference.scene().inputs());
  const std::vector<Scene::Output>& outputs = reference.scene().outputs();
  check(want.size() == outputs.size(), "compare_with_formula", "the formula gives ", want.size(),
        " outputs, the case has ", outputs.size());
  Comparison worst;
  for (size_t i = 0; i < want.size(); ++i) {
    const Tensor& got = outputs[i].view;
    check_not_cut_off(c, want[i], got.dtype());
    const Tolerance allowed = tolerance(c.family, got.dtype(), DeviceKind::cpu);
    keep_worst(worst, compare_values(read_values(got), within_range(want[i], got.dtype()), allowed),
               i);
  }
  return worst;
}

Comparison compare_with_reference(const OpCase& c, CaseRun& run, CaseRun& reference) {
  const DeviceKind kind = run.scene().device().id().kind;
  Comparison worst;
  for (size_t i = 0; i < run.scene().outputs().size(); ++i) {
    const Scene::Output& got = run.scene().outputs()[i];
    const DType type = tolerance_type(c, run, got.view.dtype());
    const Tolerance allowed = tolerance(c.family, type, kind);
    keep_worst(worst, compare_outputs(got, reference.scene().outputs()[i], allowed), i);
  }
  return worst;
}

}  // namespace rbee::harness
