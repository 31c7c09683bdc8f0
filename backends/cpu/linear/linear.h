#pragma once
// Linear layers over packed weights: one driver for every instruction set. Design and measurements:
// docs/design/quantised-linear.md.

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

extern const Impl<LinearArgs> portable_linear;
extern const Impl<LinearArgs> avx2_linear;
extern const Impl<LinearArgs> avxvnni_linear;
extern const Impl<LinearArgs> avx512_linear;
extern const Impl<LinearArgs> avx512bf16_linear;
extern const Impl<LinearArgs> amx_linear;
extern const Impl<LinearArgs> neon_linear;
extern const Impl<LinearArgs> dotprod_linear;
extern const Impl<LinearArgs> i8mm_linear;

// Panels for every type with kernels for this processor, else plain.
PackingPlan plan_packing(const View& weight);
extern const Impl<PackWeightArgs> panels_pack_weight;

}  // namespace rbee::cpu
