#pragma once

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"
#include "backends/shared/matvec_params.h"

namespace rbee::gpu {

// One row of x: decoding. Fused: with the norm before it and the gate and the residual behind it.
// Weights plain (f32, f16, bf16, f8e4m3) or packed, with rows of at least one trip of a wave
// (kPlainTrip, kPackedTrip). All parts with weights of one type go in one launch.
extern const Impl<LinearArgs> linear_one;  // of the largest weights only
extern const Impl<FusedLinearArgs> fused_linear_one;

// fused_linear_one for parts that are queries, keys and values, in this order; only queries have y.
const char* refuse_one_row(const FusedLinearArgs& args);
void run_one_row(const FusedLinearArgs& args, const shared::MatvecHeads& heads, Stream& stream);

}  // namespace rbee::gpu
