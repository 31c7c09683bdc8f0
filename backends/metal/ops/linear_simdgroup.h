#pragma once

#include "backends/api/args_matmul.h"
#include "backends/api/impl.h"

namespace rbee::metal {

// Simdgroup matrices (Apple7 and later): more than 8 rows that can be read 16 bytes at a time, on
// plain weights up to f32 and packed ones. Rounds nothing where x is f32 or bf16, and block types
// to f16 where x is f16.
extern const Impl<LinearArgs> linear_simdgroup;

}  // namespace rbee::metal
