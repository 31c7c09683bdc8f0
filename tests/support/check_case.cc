#include "tests/support/check_case.h"

#include <cmath>
#include <optional>
#include <set>

namespace rbee::harness {
namespace {

void keep_worst(Comparison& worst, const Comparison& one, size_t output) {
  if (one.worst_excess < worst.worst_excess) return;
  worst = one;
  if (!one.ok) worst.first_failure = cat("output ", output, ", ", one.first_failure);
}

// A GPU's attention may round f32 queries and weights to the type of 16-bit keys and values, and to
// f16 for 8-bit ones. Absent: it does not.
std::optional<DType> rounding_of_attention(const std::set<DType>& operands) {
  for (const DType half : {DType::bf16, DType::f16}) {
    if (operands.contains(half)) return half;
  }
  const bool narrow = operands.contains(DType::f8e4m3) || operands.contains(DType::q8_0);
  return narrow ? std::optional(DType::f16) : std::nullopt;
}

Tolerance tolerance_on_device(const OpCase& c, Scene& scene, DType output) {
  const DeviceKind kind = scene.device().id().kind;
  const std::set<DType> operands = scene.dtypes();
  if (c.family == Family::attention && output == DType::f32 && kind != DeviceKind::cpu) {
    if (const auto half = rounding_of_attention(operands)) {
      return tolerance(Family::rounded_attention, *half, kind);
    }
  }
  const Tolerance allowed = tolerance(c.family, output, kind);
  // gfx90a's matrix units take subnormal f16 numbers for zeros.
  const bool loses = c.family == Family::product && kind == DeviceKind::rocm;
  if (!loses || !operands.contains(DType::f16)) return allowed;
  return with_lost_subnormals(allowed, scene.largest_operand());
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
  Comparison worst;
  for (size_t i = 0; i < run.scene().outputs().size(); ++i) {
    const Scene::Output& got = run.scene().outputs()[i];
    const Tolerance allowed = tolerance_on_device(c, run.scene(), got.view.dtype());
    keep_worst(worst, compare_outputs(got, reference.scene().outputs()[i], allowed), i);
  }
  return worst;
}

}  // namespace rbee::harness
