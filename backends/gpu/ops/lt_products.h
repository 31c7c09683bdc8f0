#pragma once
// Matrix products and linear layers through a vendor's library (lt_library.h). refuse_..._on: why
// the library does not take them on the stream's device; null if it does. run_...: if the library
// refuses after all, the slot's next implementation takes them.

#include "backends/api/args_matmul.h"
#include "backends/api/device.h"
#include "backends/gpu/lt_library.h"

namespace rbee::gpu {

// Null for more than 8 rows and plain f32, f16 or bf16 weights, x of the weight's type (y may still
// be f32); else the reason.
const char* refuse_lt_linear(const LtLibrary& library, const LinearArgs& args);
const char* refuse_lt_linear_on(LtLibrary& library, const LinearArgs& args, Stream& stream);
void run_lt_linear(LtLibrary& library, const LinearArgs& args, Stream& stream);
// False if the library refuses any part; some parts' results may be written by then.
bool try_lt_linear(LtLibrary& library, const LinearArgs& args, Stream& stream);

// The same for one layer that adds a residual and nothing else.
const char* refuse_lt_fused_linear(const LtLibrary& library, const FusedLinearArgs& args);
const char* refuse_lt_fused_linear_on(LtLibrary& library, const FusedLinearArgs& args,
                                      Stream& stream);
void run_lt_fused_linear(LtLibrary& library, const FusedLinearArgs& args, Stream& stream);

// Null for f32, f64, f16 and bf16 matrices with one unit stride each, whose batch axes step evenly;
// else the reason.
const char* refuse_lt_matmul(const LtLibrary& library, const MatmulArgs& args);
const char* refuse_lt_matmul_on(LtLibrary& library, const MatmulArgs& args, Stream& stream);
void run_lt_matmul(LtLibrary& library, const MatmulArgs& args, Stream& stream);

}  // namespace rbee::gpu
