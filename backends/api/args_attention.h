#pragma once

#include "backends/api/args_matmul.h"
#include "backends/shared/kv_page.h"

namespace rbee {

// For q8_0 key/value caches (layout: backends/shared/kv_page.h): their View::packing, and the
// number of elements of a row that share a scale.
inline constexpr uint8_t kPagePacking = shared::kPagePacking;
inline constexpr int64_t kPageGroup = shared::kPageGroup;

enum class RopeLayout : uint8_t {
  half,         // pairs (i, i + rot/2): GPT-NeoX, Hugging Face
  interleaved,  // pairs (2i, 2i + 1): original Llama, GGUF llama
};

// Rotary position embedding (Su et al. 2021, section 3.2.2). Only the first 2 * cos.size(-1)
// elements of a head are rotated, the rest is copied.
//   x, y: (batch, heads, time, head_dim), any strides (so "thd" is a permuted view)
//   cos, sin: (positions, rot / 2) f32
//   positions: (batch, time) i32, rows of cos and sin; absent: row = index along time
struct RopeArgs {
  View x, cos, sin, positions, y;
  RopeLayout layout = RopeLayout::half;
};

// y = softmax(softcap(q * k^T * scale) + alibi + mask) * v; heads % kv_heads == 0
//   q, y: (batch, heads, q_len, head_dim)   k: (batch, kv_heads, kv_len, head_dim)
//   v: (batch, kv_heads, kv_len, v_dim); y ends in v_dim
//   mask: added to scores, f32, broadcast to (batch, heads, q_len, kv_len); absent = none
//   alibi_slopes: (heads) f32; absent = none; alibi = -slope * |place - key| (Press et al. 2022)
// Query i has place i + kv_len - q_len among the keys. causal: it sees no key after its place. If a
// row has no keys, or none above -inf, its result is zeros.
struct AttentionArgs {
  View q, k, v, mask, alibi_slopes, y;
  float scale = 1;
  float softcap = 0;   // softcap(s) = softcap * tanh(s / softcap); 0 = off
  int64_t window = 0;  // a query sees no key before place - window + 1; 0 = all
  bool causal = false;
};

// Attention of a ragged batch over a paged key/value cache (Kwon et al. 2023). Causal but for
// key_ends: the queries of a sequence are its last tokens.
//   q, y: (tokens, heads, head_dim)            sequences lie one after another
//   k_cache, v_cache: (blocks, kv_heads, block_size, head_dim) f32, f16, bf16, f8e4m3, or q8_0 in
//   pages (shared/kv_page.h)
//   seq_starts: (seqs + 1) i32                 first token of each sequence in q; last = tokens
//   kv_lens: (seqs) i32                        keys in the cache, the queries' own included
//   block_table: (seqs, max_blocks) i32        cache block of each block_size keys
//   sinks: (heads) f32                         a score that takes part in the softmax and has no
//   value (Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks", section
//   3.2); absent = none. Contiguous.
//   key_ends: (tokens) i32                     a query sees all keys before its key_ends too, also
//   those after its place, as within a picture (window cuts the keys before it as ever); at most
//   the sequence's kv_lens; absent = none. Contiguous.
//   alibi_slopes: (heads) f32                  as in AttentionArgs; absent = none. Contiguous.
//   single_queries: so many sequences in front have one query each; of the others nothing is known
// seq_starts, kv_lens, block_table and key_ends are constants, like the weights of FusedLinearArgs:
// GPUs may read them before earlier operations have ended.
struct PagedAttentionArgs {
  View q, k_cache, v_cache, seq_starts, kv_lens, block_table, sinks, key_ends, alibi_slopes, y;
  int64_t single_queries = 0;
  float scale = 1;
  float softcap = 0;   // 0 = off
  int64_t window = 0;  // 0 = all
};

// Writes new keys and values into a paged cache.
//   k, v: (tokens, kv_heads, head_dim)   slots: (tokens) i32 = block * block_size + offset; -1
//   skips
struct KvAppendArgs {
  View k, v, slots, k_cache, v_cache;
};

// rope of q and k, then kv_append of the rotated keys and of v: a decoder layer's work between its
// projections and its attention. A backend may leave the slot empty: then rbee/ops runs the two
// operations.
//   q, q_out: (tokens, heads, head_dim)         k, v: (tokens, kv_heads, head_dim), dtype of q
//   cos, sin: (positions, rot / 2) f32          positions, slots: (tokens) i32
//   k_cache, v_cache: as in KvAppendArgs
struct RopeAppendArgs {
  View q, k, v, cos, sin, positions, slots, q_out, k_cache, v_cache;
  RopeLayout layout = RopeLayout::half;
};

// The projections of a layer's queries, keys and values, and RopeAppendArgs of them:
//   h = norm_weight present ? rms_norm(x, norm_weight, eps) : x
//   q, k, v = h * weight^T + bias of each part, in x's dtype; then rope_append
//   x: (tokens, in) f32, f16 or bf16, contiguous      norm_weight: (in), x's dtype
//   parts: of q, k and v, without y                   q_out: (tokens, heads, head_dim), contiguous
//   the others: as in RopeAppendArgs
// Backends may leave this slot empty or refuse, as with FusedLinearArgs. Its rule on constants
// holds here too, and also for positions and slots.
struct QkvAppendArgs {
  View x, norm_weight;
  float eps = 0;
  std::span<const LinearPart> parts;
  View cos, sin, positions, slots, q_out, k_cache, v_cache;
  RopeLayout layout = RopeLayout::half;
};

}  // namespace rbee
