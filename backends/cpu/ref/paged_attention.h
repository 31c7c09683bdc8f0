#pragma once

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"

namespace rbee::cpu {

extern const Impl<PagedAttentionArgs> ref_paged_attention;
extern const Impl<KvAppendArgs> ref_kv_append;

}  // namespace rbee::cpu
