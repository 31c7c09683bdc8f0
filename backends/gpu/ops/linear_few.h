#pragma once

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::gpu {

// Up to 8 rows of x: decoding. Weights plain (f32, f16, bf16, f8e4m3) with rows of whole 16-byte
// packs, or packed. All parts with weights of one type go in one launch.
extern const Impl<LinearArgs> linear_few;

}  // namespace rbee::gpu
