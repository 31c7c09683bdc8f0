#pragma once
// Rewrites plain weights as panels (layouts: panel.h).

#include "backends/api/args_matmul.h"

namespace rbee::cpu {

// Bytes of `in` inputs of one panel, which must be whole records. 0 for types without a layout.
int64_t panel_bytes(DType dtype, int64_t in);

// The padded number of inputs: for bf16 the next even number, else `in`.
int64_t packed_inputs(DType dtype, int64_t in);

// Fills `packed`, ceil(out / 16) * panel_bytes(dtype, in) bytes, on all threads.
void pack_panels(const View& weight, std::byte* packed);

}  // namespace rbee::cpu
