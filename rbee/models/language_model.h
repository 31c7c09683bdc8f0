#pragma once
// The interface of decoder-only language models, for all families.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rbee/group/share.h"
#include "rbee/io/checkpoint.h"
#include "rbee/models/picture_encoder.h"
#include "rbee/nn/kv_cache.h"
#include "rbee/nn/lora.h"
#include "rbee/nn/split_vocabulary.h"
#include "rbee/ops/attention.h"
#include "rbee/tensor/tensor.h"

namespace rbee::nn {
class WeightStash;
}

namespace rbee::models {

// Rows of a picture that replace token embeddings of a batch.
struct PictureRows {
  int64_t first = 0;  // row of the batch
  Tensor rows;        // (n, dim), as PictureEncoder gives them
};

// New tokens of one or more sequences, one sequence after another.
struct ForwardBatch {
  Tensor ids;         // (tokens) i32, below vocab_size
  Tensor positions;   // (tokens) i32, absolute position in its sequence, below the loaded context
  PagedBatch paged;   // where keys and values of each sequence lie
  Tensor logit_rows;  // (n) i32, rows of the batch that need logits
  // (seqs) i32, the slot of each sequence's states; -1: padding. A sequence whose first token here
  // has position 0 begins with zeros, whatever is in the slot. Undefined: no layer has any.
  Tensor state_slots = {};
  std::vector<PictureRows> pictures;
  nn::LoraRows lora;  // of the tokens
  // Of a model with layers on the host: what they gave, as run_host_layers(). Its rows are the
  // tokens, or the logit rows if no layer follows.
  Tensor hidden = {};
  // Called with the residual stream after each layer, before the final norm. After the last layer
  // it has only the logit rows.
  std::function<void(int64_t layer, const Tensor& hidden)> on_layer;
};

struct ModelConfig {
  std::string architecture;  // as the checkpoint names it, e.g. "llama"
  std::string name;          // as the checkpoint calls itself; may be empty
  int64_t vocab_size = 0;
  int64_t dim = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn_dim = 0;
  int64_t context_length = 0;  // trained positions
  float norm_eps = 0;
  bool tied_embeddings = false;  // the token table is also the output matrix
  bool one_cache = false;  // values are kept with the keys, see nn::KvCacheOptions::one_tensor
  bool causal = true;      // false: every token sees its whole text, for embeddings only
  // If not causal: the number of keys on either side, with its own, that a token sees in layers
  // with a window; 0 = no layer has one.
  int64_t reach = 0;
};

// What caches of keys and values must have, see nn::KvCacheOptions.
struct CacheShape {
  std::vector<nn::CacheLayer> layers;
  bool one_tensor = false;

  // Whether layers keep states besides or instead of keys.
  bool has_states() const { return nn::KvCacheOptions{.layers = layers}.has_states(); }
};

// The first layers of a model whose device has no room for all of them.
struct HostLayers {
  Device* host = nullptr;  // computes the token embedding and `count` layers; null: there is none
  int64_t count = 0;

  bool any() const { return host != nullptr; }
};

class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  virtual const ModelConfig& config() const = 0;
  // As config() says, but of a group's rank with the key heads that the rank holds.
  virtual CacheShape cache_shape() const {
    const ModelConfig& sizes = config();
    const nn::CacheLayer each{.kv_heads = sizes.kv_heads, .head_dim = sizes.head_dim};
    return {.layers = std::vector(static_cast<size_t>(sizes.layers), each),
            .one_tensor = sizes.one_cache};
  }
  // The rank of a group that the model was loaded for, and which ranks compute which logits.
  virtual GroupView group() const { return {}; }
  virtual nn::SplitVocabulary vocabulary() const {
    return nn::SplitVocabulary(config().vocab_size);
  }
  // Adds the batch's keys and values to the cache and returns logits (n, vocabulary().own()) f32.
  // The cache has the model's cache_shape(). Const: one model may serve several caches. A model
  // with layers on the host takes their result in the batch. In a group, all ranks must run the
  // same batches; it throws device if the group has ended.
  virtual Tensor forward(const ForwardBatch& batch, nn::KvCache& cache) const = 0;
  // The same up to the final norm: the states (n, dim) of the logit rows, as activations().
  virtual Tensor states(const ForwardBatch& batch, nn::KvCache& cache) const = 0;

  virtual HostLayers host_layers() const { return {}; }
  // Layers on the device whose experts are on the host. If there are any, forward() waits for the
  // device in between, and cannot be captured.
  virtual int64_t cpu_moe_layers() const { return 0; }
  // Bytes of the host's weights that a step of so many tokens brings to the device.
  virtual int64_t visiting_bytes(int64_t tokens) const {
    (void)tokens;
    return 0;
  }
  // The token embedding and the layers on the host: f32 rows there, the batch's tokens or, if all
  // layers are there, its logit rows. Its tensors are on the host.
  virtual Tensor run_host_layers(const ForwardBatch& batch, nn::KvCache& cache) const {
    (void)batch, (void)cache;
    return {};
  }

  // Null if the model reads only text.
  virtual const PictureEncoder* pictures() const { return nullptr; }
  // The linear layers that adapters may change.
  virtual std::span<const nn::LoraTarget> lora_targets() const = 0;

  virtual DType activations() const = 0;         // what layers compute in
  virtual int64_t weight_bytes() const = 0;      // resident, packed copies included
  virtual int64_t parameters() const = 0;        // weights, tied ones once
  virtual std::string quantization() const = 0;  // most common weight type by bytes, e.g. "q4_1"
};

inline constexpr int64_t kAllLayers = INT64_MAX;

struct LoadOptions {
  Device* device = nullptr;
  int64_t context = 0;  // positions to prepare rope tables for; 0 = min(trained, 4096)
  bool output = true;   // false: without the output matrix, only for states()
  // Only so many of the first layers, for the hidden states behind them; config() says so many.
  int64_t first_layers = kAllLayers;
  // The vision tower of a model whose own file has none (GGUF's mmproj). Not read after loading.
  const io::Checkpoint* pictures = nullptr;
  // Layers on the device, from the last one on, where the output matrix counts as the last. If that
  // is fewer than there are, `host` computes the others and the token embedding.
  int64_t gpu_layers = kAllLayers;
  Device* host = nullptr;
  // The experts of the first layers, so many, are on `host`, which computes them; gpu_layers says
  // where the rest of these layers is. kAllLayers: of all. llama.cpp's --n-cpu-moe.
  int64_t cpu_moe_layers = 0;
  // Steps of so many tokens or more bring the host's weights to the device, which computes their
  // products; experts when each gets a quarter of that on average. 0: no step does. llama.cpp's
  // GGML_OP_OFFLOAD_MIN_BATCH.
  int64_t op_offload_min_batch = 0;
  bool pack_weights = true;          // rewrite matrices for the device's kernels
  nn::WeightStash* stash = nullptr;  // see nn::WeightOptions
  // Of a layer's experts each rank of a group holds a range whole, in place of a part of each.
  bool expert_parallel = false;
  // The rank of a group that loads its part of the model; its view must outlive the model.
  group::Membership group = {};
  // What layers compute in: f32, f16 or bf16. Sums, norms and softmax are always f32.
  DType activations = DType::f32;
  std::function<void(int64_t done, int64_t total)> progress;  // bytes of the checkpoint's tensors
};

// Throws unsupported for an unknown architecture (listing the known ones) or a feature of the
// checkpoint that is not implemented, not_found naming a missing tensor or field, and
// invalid_argument naming a tensor or field with a wrong shape or value.
std::unique_ptr<LanguageModel> load_language_model(const io::Checkpoint& checkpoint,
                                                   const LoadOptions& options);

}  // namespace rbee::models
