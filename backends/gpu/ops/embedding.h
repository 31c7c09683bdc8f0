#pragma once

#include "backends/api/args_indexing.h"
#include "backends/api/impl.h"

namespace rbee::gpu {

// Tables of every float and block type, results of every float type.
extern const Impl<EmbeddingArgs> embedding;

}  // namespace rbee::gpu
