#pragma once

#include <vector>

#include "rbee/nn/kv_cache.h"
#include "rbee/nn/linear.h"
#include "rbee/nn/norm.h"
#include "rbee/nn/rope.h"
#include "rbee/ops/attention.h"

namespace rbee::nn {

// What all layers of one pass share, and what the cache keeps of the current layer.
struct LayerStep {
  const Tensor& positions;  // (tokens) i32
  const PagedBatch& paged;
  Tensor& keys;    // (blocks, kv_heads, block_size, head_dim)
  Tensor& values;  // the same
  // In the last layer: the rows that are still needed after its attention, (n) i32; else undefined.
  Tensor logit_rows;
  // Of layers with states, see ForwardBatch::state_slots.
  Tensor state_slots = {};  // (seqs) i32
  LayerState state = {};
};

enum class QkNorm : uint8_t {
  none,
  head,       // RMS norm of each head, with one weight for all
  turned,     // the same, behind the rotation (Hunyuan)
  row,        // RMS norm of all heads together
  each_head,  // layer norm of each head, with a weight for each and no biases
};

struct AttentionSpec {
  int64_t dim = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  Bias qkv_bias = Bias::none;
  Bias output_bias = Bias::none;
  bool fused = false;       // "attn_qkv" holds the rows of q, k and v
  bool plain_rows = false;  // GGUF's interleaved q and k are in Hugging Face's order
  // The result times sigmoid(gate) (Qiu et al. 2025, "Gated Attention for Large Language Models").
  // "attn_q" then has for each head the rows of its queries, then as many of its gate.
  bool gated = false;
  QkNorm qk_norm = QkNorm::none;   // of q and k
  NormOptions head_norm{};         // with qk_norm; dim is not read
  bool rotated = true;             // false: no position encoding (Kazemnejad et al. 2023)
  bool sinks = false;              // "attn_sinks" holds a score of each head without a value
  PagedAttentionOptions scores{};  // scale, softcap, window
};

// Causal self-attention with grouped queries (Ainslie et al. 2023) over a paged cache.
class Attention {
 public:
  // Takes attn_q, attn_k, attn_v (or attn_qkv), attn_output, attn_q_norm, attn_k_norm and
  // attn_sinks of a layer; of a group's rank, for its heads. Throws unsupported if the heads of a
  // group have a norm together or gates, and what share_heads() throws.
  Attention(const WeightScope& layer, const AttentionSpec& spec, const Rope& rope);

  // x: (tokens, dim); result: (tokens, dim). Appends the tokens' keys and values to the cache.
  Tensor operator()(const LayerInput& x, const LayerStep& step) const {
    return output_(attend(x, step), x.lora);
  }
  // The branch in two steps: the input of the output layer, (tokens, the rank's heads * head_dim),
  // and that layer.
  Tensor attend(const LayerInput& x, const LayerStep& step) const;
  const Linear& output() const { return output_; }

 private:
  struct Heads {
    Tensor q;     // (tokens, heads, head_dim)
    Tensor k, v;  // (tokens, kv_heads, head_dim)
    Tensor gate;  // (tokens, heads * head_dim); undefined: none
  };
  void take_projections(const WeightScope& layer, const group::HeadShare& own);
  void take_sinks(const WeightScope& layer, const group::HeadShare& own);
  void take_norms(const WeightScope& layer, const group::HeadShare& own);
  Heads project(const LayerInput& x) const;
  struct Queries {
    Tensor q, gate;  // as in Heads
  };
  Queries project_and_append(const LayerInput& x, const LayerStep& step) const;

  AttentionSpec spec_;  // with the rank's heads
  Rope rope_;
  Linear query_, key_, value_, output_;
  RmsNorm query_norm_, key_norm_;
  HeadLayerNorm query_head_norm_, key_head_norm_;  // of QkNorm::each_head
};

}  // namespace rbee::nn
