#pragma once

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"
#include "backends/gpu/launch.h"
#include "backends/shared/matvec_params.h"

namespace rbee::gpu {

// One row of x: decoding. Fused: with the norm before it and the gate and the residual after it.
// Weights plain (f32, f16, bf16, f8e4m3) or packed, with rows of at least one trip of a wave
// (kPlainTrip, kPackedTrip). All parts with weights of one type go in one launch.
extern const Impl<LinearArgs> linear_one;  // only for the largest weights
extern const Impl<FusedLinearArgs> fused_linear_one;

// One launch of it: parts with weights of one type.
struct OneRowLaunch {
  DType x, weight;
  shared::MatvecOneParams params;  // without split and ring
  bool fused = true;               // its weights are constants, and nothing else is written
  // Launches of the same product, with other weights and results, come before it, and after it.
  bool after_another = false, before_another = false;

  ReadsAhead reads_ahead() const;  // of kernels that read weights ahead
  Writes writes() const;
};
using StartOneRow = void (*)(const OneRowLaunch& what, Stream& stream);
// gpu_one's.
void start_one_row(const OneRowLaunch& what, Stream& stream);

struct OneRow {
  StartOneRow start = start_one_row;
  // The destination of parts that are queries, keys and values, in this order; only queries
  // have y. Null: results go to their parts' y.
  const shared::MatvecHeads* heads = nullptr;
  bool fused = true;
};

// For kernels with another launch; of LinearArgs those with many outputs, plain weights too. x may
// have any length.
const char* refuse_one_row(const LinearArgs& args);
const char* refuse_one_row(const FusedLinearArgs& args);
// For x that does not fit the shared memory of a block of gpu_one on the stream's device.
const char* refuse_long_x(const View& x, std::span<const LinearPart> parts, Stream& stream);
void run_one_row(const LinearArgs& args, const OneRow& how, Stream& stream);
void run_one_row(const FusedLinearArgs& args, const OneRow& how, Stream& stream);

}  // namespace rbee::gpu
