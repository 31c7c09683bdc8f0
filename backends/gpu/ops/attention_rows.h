#pragma once
// Paged attention by tiles of rows, the queries of a sequence times the heads that share a key
// head, for kernels on matrix units that take heads too wide for tiles of one head's queries.

#include "backends/api/args_attention.h"
#include "backends/api/device.h"
#include "backends/gpu/kernel_name.h"
#include "backends/shared/attention_params.h"

namespace rbee::gpu {

// A kernel with a block for each tile (x), key head (y) and part of the keys (z), which is named in
// AttentionParams::splits. With several parts it leaves sums and statistics to attention_join.cu.
struct RowKernel {
  const char* family;
  KernelName name;
  int64_t rows;  // of a tile
  uint32_t threads;
  uint32_t shared_bytes;
};

// Null for heads of more than 256 and up to `most` elements, keys and values in 16 bits, f8e4m3 or
// q8_0, q of the keys' type or f32 (any of 32 and 16 bits over 8-bit keys), all in rows that can be
// read 16 bytes at a time; else the reason.
const char* refuse_rows(const PagedAttentionArgs& args, int64_t most);

void launch_rows(const PagedAttentionArgs& args, const RowKernel& kernel, Stream& stream);

}  // namespace rbee::gpu
