#pragma once

#include "backends/api/args_attention.h"
#include "backends/api/impl.h"
#include "backends/gpu/driver.h"
#include "backends/gpu/kernel_name.h"
#include "backends/shared/attention_params.h"

namespace rbee::gpu {

// Everything: any dtype, head size and strides.
extern const Impl<AttentionArgs> attention;
extern const Impl<PagedAttentionArgs> paged_attention;

// Few queries for each sequence, over heads of up to 256 elements whose rows can be read 16 bytes
// at a time; keys and values f32, f16, bf16, f8e4m3 or q8_0.
extern const Impl<AttentionArgs> attention_decode;
extern const Impl<PagedAttentionArgs> paged_attention_decode;

// A kernel for what attention_decode takes, for `heads` that share a key head at a time.
struct DecodeKernel {
  const char* family;
  KernelName name;
  int64_t heads;
  int64_t blocks_each;  // that a multiprocessor holds
  int64_t least_share;  // least keys of a part: fewer cost more than they save
};
void launch_decode(const char* op, shared::AttentionParams params, const DecodeKernel& kernel,
                   Stream& stream);

// Sequences of one query each before others: runs the device's kernels for either, separately.
extern const Impl<PagedAttentionArgs> paged_attention_split;

// f16 and bf16, heads of more than 256 elements, no mask: products of the device's linear layers.
extern const Impl<AttentionArgs> attention_wide;

// The arguments in the kernels' form; for vendors' kernels too.
shared::AttentionParams attention_params(const AttentionArgs& args);
shared::AttentionParams attention_params(const PagedAttentionArgs& args);

// One block for each head and tile of `tile` queries, in find_tile()'s order. If a ragged batch has
// fewer tiles, some blocks have no work.
Grid query_grid(const shared::AttentionParams& params, int64_t tile);

// True if scores are more than products scaled by a positive number: with a cap, ALiBi or a mask.
bool shaped_scores(const shared::AttentionParams& params);

// For kernels on matrix units, with 16-bit keys and values, q of their type or f32 and heads of up
// to `most` elements: null when they can read and write these operands, else the reason.
const char* refuse_attention_tiles(const View& q, const View& k, const View& v, const View& y,
                                   int64_t most);

// From a view's first element to past its last.
int64_t span_bytes(const View& view);

// For kernels that read a cache of 8-bit elements eight at a time. refuse_narrow_cache: for kernels
// on matrix units, which multiply in f16, for heads of up to `most` elements.
bool narrow_cache(const PagedAttentionArgs& args);
const char* refuse_narrow_cache(const PagedAttentionArgs& args, int64_t most);
const char* refuse_pages(const View& cache);

}  // namespace rbee::gpu
