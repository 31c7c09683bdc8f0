#pragma once

#include "backends/api/args_indexing.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

extern const Impl<EmbeddingArgs> ref_embedding;

}  // namespace rbee::cpu
