#pragma once

#include "rbee/tensor/tensor.h"

namespace rbee {

struct AttentionOptions {
  float scale = 0;      // applied to scores; 0 = 1 / sqrt(head_dim)
  float softcap = 0;    // softcap * tanh(s / softcap); 0 = off
  int64_t window = 0;   // a query sees no key before place - window + 1; 0 = all
  bool causal = false;  // a query sees no key after its place
  Tensor mask;          // f32, broadcast to (batch, heads, q_len, kv_len), added to scores
  Tensor alibi_slopes;  // (heads) f32; adds -slope * |place - key| (Press et al. 2022)
};

// Scaled dot-product attention; heads % kv_heads == 0 (GQA, MQA)
//   q: (batch, heads, q_len, head_dim)   k: (batch, kv_heads, kv_len, head_dim)
//   v: (batch, kv_heads, kv_len, v_dim)  result: (batch, heads, q_len, v_dim)
// The result lies as (batch, q_len, heads, v_dim), for the projection that follows. Query i has
// place i + kv_len - q_len among the keys. If a query sees no key, or no key with a score above
// -inf, its result is zeros. q, k, v: one float dtype, any strides.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options);

// A ragged batch over a paged cache; host-built index tensors, see PagedAttentionArgs.
struct PagedBatch {
  Tensor seq_starts;   // (seqs + 1) i32, first token of each sequence
  Tensor kv_lens;      // (seqs) i32, keys in the cache, the new ones included
  Tensor block_table;  // (seqs, max_blocks) i32
  Tensor slots;        // (tokens) i32, block * block_size + offset of each new key; -1 = skip
  // (tokens) i32, contiguous: each token sees the keys before this one too; undefined = none.
  Tensor key_ends;
  // The same for attention with a window; undefined = key_ends. With both, the windowed and the
  // full layers of a bidirectional model share a batch.
  Tensor window_key_ends;
  // The first `single_queries` sequences have one query each. The others may have any number.
  int64_t single_queries = 0;
};

struct PagedAttentionOptions {
  float scale = 0;     // 0 = 1 / sqrt(head_dim)
  float softcap = 0;   // 0 = off
  int64_t window = 0;  // 0 = all
  Tensor sinks;        // (heads) f32, contiguous: a score of each head without a value; undefined =
                       // none
  Tensor alibi_slopes;  // (heads) f32, contiguous: as in AttentionOptions; undefined = none
};

// Whether a cache can keep keys and values in this type: f32, f16, bf16, f8e4m3 or q8_0.
bool is_cache_dtype(DType dtype);

// An uninitialised paged cache of (blocks, kv_heads, block_size, head_dim). A q8_0 cache has the
// layout of backends/shared/kv_page.h, and head_dim must be a multiple of 32; only the operations
// below take it. in_host_memory: in memory of the host that the device's kernels read over the bus.
// Throws invalid_argument for another dtype or head_dim, and out_of_memory.
Tensor empty_cache(const Shape& shape, DType dtype, Device& device, bool in_host_memory = false);

// q: (tokens, heads, head_dim), rows may be strided   result: (tokens, heads, head_dim), contiguous
// k_cache, v_cache: (blocks, kv_heads, block_size, head_dim) of one cache type
Tensor paged_attention(const Tensor& q, const Tensor& k_cache, const Tensor& v_cache,
                       const PagedBatch& batch, const PagedAttentionOptions& options);

// Writes k, v: (tokens, kv_heads, head_dim) at batch.slots into the caches (in place).
void kv_append_(const Tensor& k, const Tensor& v, const Tensor& slots, Tensor& k_cache,
                Tensor& v_cache);

}  // namespace rbee
