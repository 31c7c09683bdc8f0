#pragma once

#include "rbee/nn/attention.h"

namespace rbee::nn {

struct LatentAttentionSpec {
  int64_t dim = 0;
  int64_t heads = 0;
  int64_t query_rank = 0;  // of the compressed queries; 0 = not compressed
  int64_t rank = 0;        // of the latent from which keys and values are made
  int64_t plain_dim = 0;   // elements of a head's query and key that are not rotated
  int64_t rope_dim = 0;    // elements that are; all heads share those of the key
  int64_t value_dim = 0;   // of a head
  float norm_eps = 1e-6f;
  float scale = 0;  // of the scores
};

// Multi-head latent attention (DeepSeek-AI 2024, "DeepSeek-V2", section 2.1), in the absorbed form,
// which attends over the latents themselves: the matrix that would make keys is applied to the
// query, and the one that would make values to the attention's result. All heads share one key of
// rank + rope_dim elements; its first `rank` are the value, so the cache holds one tensor
// (KvCache).
class LatentAttention {
 public:
  // Takes attn_q (or attn_q_a, attn_q_a_norm and attn_q_b), attn_kv_a_mqa, attn_kv_a_norm,
  // attn_kv_b (or attn_k_b and attn_v_b) and attn_output of a layer; of a group's rank, for its
  // heads, and all of the latents. Throws what share_heads() throws.
  LatentAttention(const WeightScope& layer, const LatentAttentionSpec& spec, const Rope& rope);

  // The branch in two steps: the input of the output layer, (tokens, the rank's heads * value_dim),
  // and that layer. x: (tokens, dim). attend() appends the tokens' latents to the cache.
  Tensor attend(const Tensor& x, const LayerStep& step) const;
  const Linear& output() const { return output_; }

 private:
  void take_latent_matrices(const WeightScope& layer, const group::Range& own);
  Tensor queries(const Tensor& x, const Tensor& positions) const;
  Tensor latents(const Tensor& x, const Tensor& positions) const;

  LatentAttentionSpec spec_;  // with the rank's heads
  Rope rope_;
  Linear query_, query_up_, latent_, output_;
  RmsNorm query_norm_, latent_norm_;
  Tensor key_up_;    // (heads, plain_dim, rank)
  Tensor value_up_;  // (heads, rank, value_dim)
};

}  // namespace rbee::nn
