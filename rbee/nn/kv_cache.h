#pragma once
// What layers keep of the sequences. Keys and values lie in fixed-size blocks (Kwon et al. 2023,
// section 4.1); the caller decides which block belongs to which sequence (PagedBatch::block_table).
// Layers without keys keep states of a fixed size instead, in a slot for each sequence
// (ForwardBatch::state_slots).

#include <cstdint>
#include <vector>

#include "rbee/tensor/tensor.h"

namespace rbee::nn {

// The sizes of one sequence's states in a layer: see CausalConvArgs and DeltaRuleArgs.
struct StateShape {
  int64_t taps = 0, channels = 0;  // of the convolution's tail
  int64_t heads = 0, key_dim = 0, value_dim = 0;

  bool any() const { return taps > 0; }
  int64_t bytes() const;
  bool operator==(const StateShape&) const = default;
};

// What one layer keeps.
struct CacheLayer {
  int64_t kv_heads = 0;  // 0: the layer has no keys and values
  int64_t head_dim = 0;
  StateShape state = {};

  bool operator==(const CacheLayer&) const = default;
};

struct KvCacheOptions {
  std::vector<CacheLayer> layers;
  int64_t blocks = 0;        // blocks in the pool, shared by all sequences
  int64_t block_size = 32;   // positions in a block
  DType dtype = DType::f16;  // f32, f16, bf16, f8e4m3 or q8_0
  bool one_tensor = false;   // values are the keys: latent attention
  bool one_layer = false;    // layers share memory: for passes whose cache is not read again
  // The first host_layers layers are on `host`, if that is not null.
  Device* host = nullptr;
  int64_t host_layers = 0;
  // The device's layers are in host memory that its kernels read over the bus.
  bool in_host_memory = false;
  int64_t state_slots = 0;  // sequences whose states are kept; not read if no layer has any

  bool has_states() const;
};

// One layer's states, f32, zeros at first. At position 0 of a sequence layers begin with zeros.
struct LayerState {
  Tensor tail;    // (slots, taps, channels)
  Tensor matrix;  // (slots, heads, key_dim, value_dim)
};

class KvCache {
 public:
  // Throws invalid_argument for a size below 1, for a layer that keeps nothing, for a dtype that
  // caches cannot have, and for a head_dim that the dtype cannot have; and out_of_memory.
  KvCache(const KvCacheOptions& options, Device& device);

  // (blocks, kv_heads, block_size, head_dim); undefined: the layer has none.
  Tensor& keys(int64_t layer) { return keys_[static_cast<size_t>(layer)]; }
  Tensor& values(int64_t layer) { return values_[static_cast<size_t>(layer)]; }
  // Tensors are undefined in a layer without states.
  LayerState& state(int64_t layer) { return states_[static_cast<size_t>(layer)]; }
  const KvCacheOptions& options() const { return options_; }
  int64_t blocks() const { return options_.blocks; }
  int64_t block_size() const { return options_.block_size; }
  // Of all layers, with states; with one_layer the keys and values of one.
  int64_t bytes() const;

  // Bytes of keys and values of layers [first, end) for each position.
  static int64_t token_bytes(const KvCacheOptions& options, int64_t first, int64_t end);
  // Bytes of the states of layers [first, end) for each sequence.
  static int64_t state_bytes(const KvCacheOptions& options, int64_t first, int64_t end);

 private:
  void add_layer(int64_t index, Device& device);

  KvCacheOptions options_;
  std::vector<Tensor> keys_;
  std::vector<Tensor> values_;
  std::vector<LayerState> states_;
};

}  // namespace rbee::nn
