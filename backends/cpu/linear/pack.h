#pragma once
// Rewrites plain weights as panels (layouts: panel.h).

#include "backends/api/args_matmul.h"

namespace rbee::cpu {

// Bytes that `in` inputs of one panel take; whole records only. 0 for types without a layout.
int64_t panel_bytes(DType dtype, int64_t in);

// Inputs that packing fills `in` up to: the next even number for bf16.
int64_t packed_inputs(DType dtype, int64_t in);

// Fills `packed`, ceil(out / 16) * panel_bytes(dtype, in) bytes, on all threads.
void pack_panels(const View& weight, std::byte* packed);

}  // namespace rbee::cpu
