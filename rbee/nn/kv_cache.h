#pragma once
// Keys and values of all layers in fixed-size blocks (Kwon et al. 2023, section 4.1). The caller
// decides which block belongs to which sequence (PagedBatch::block_table).

#include <cstdint>
#include <vector>

#include "rbee/tensor/tensor.h"

namespace rbee::nn {

struct KvCacheOptions {
  int64_t layers = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
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
};

class KvCache {
 public:
  // Throws invalid_argument for a size below 1, for a dtype that caches cannot have, and for a
  // head_dim that the dtype cannot have; and out_of_memory.
  KvCache(const KvCacheOptions& options, Device& device);

  // (blocks, kv_heads, block_size, head_dim)
  Tensor& keys(int64_t layer) { return keys_[static_cast<size_t>(layer)]; }
  Tensor& values(int64_t layer) { return values_[static_cast<size_t>(layer)]; }
  const KvCacheOptions& options() const { return options_; }
  int64_t blocks() const { return options_.blocks; }
  int64_t block_size() const { return options_.block_size; }
  int64_t bytes() const;  // of all layers, keys and values; of one with one_layer

  // Bytes of these layers, keys and values, for each position.
  static int64_t token_bytes(const KvCacheOptions& options, int64_t layers);

 private:
  KvCacheOptions options_;
  std::vector<Tensor> keys_;
  std::vector<Tensor> values_;
};

}  // namespace rbee::nn
