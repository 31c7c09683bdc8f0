#include "rbee/nn/kv_cache.h"

#include "rbee/ops/attention.h"

namespace rbee::nn {
namespace {

int64_t bytes_of(const KvCacheOptions& options) {
  return options.blocks * options.block_size *
         KvCache::token_bytes(options, options.one_layer ? 1 : options.layers);
}

}  // namespace

int64_t KvCache::token_bytes(const KvCacheOptions& options, int64_t layers) {
  // Not row_bytes(): whether the type fits the heads is for whoever makes a cache.
  const DTypeInfo& type = info(options.dtype);
  const int64_t tensors = (options.one_tensor ? 1 : 2) * layers;
  return tensors * options.kv_heads * options.head_dim * type.block_bytes / type.block_size;
}

KvCache::KvCache(const KvCacheOptions& options, Device& device) : options_(options) {
  constexpr const char* kOp = "kv_cache";
  check(options.layers > 0, kOp, "layers is ", options.layers, ", wanted at least 1");
  check(options.kv_heads > 0, kOp, "kv_heads is ", options.kv_heads, ", wanted at least 1");
  check(options.head_dim > 0, kOp, "head_dim is ", options.head_dim, ", wanted at least 1");
  check(options.blocks > 0, kOp, "blocks is ", options.blocks, ", wanted at least 1");
  check(options.block_size > 0, kOp, "block_size is ", options.block_size, ", wanted at least 1");
  const Shape shape{options.blocks, options.kv_heads, options.block_size, options.head_dim};
  keys_.reserve(static_cast<size_t>(options.layers));
  values_.reserve(static_cast<size_t>(options.layers));
  try {
    for (int64_t layer = 0; layer < options.layers; ++layer) {
      if (layer > 0 && options.one_layer) {
        keys_.push_back(keys_.front());
        values_.push_back(values_.front());
        continue;
      }
      const bool on_host = options.host != nullptr && layer < options.host_layers;
      const auto make = [&] {
        return empty_cache(shape, options.dtype, on_host ? *options.host : device,
                           !on_host && options.in_host_memory);
      };
      keys_.push_back(make());
      values_.push_back(options.one_tensor ? keys_.back() : make());
    }
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory) throw;
    fail(Code::out_of_memory, kOp, options.blocks * options.block_size, " tokens in ",
         options.dtype, " take ", bytes_of(options) >> 20, " MiB (", bytes_of(options),
         " bytes): ", error.what());
  }
}

int64_t KvCache::bytes() const {
  return bytes_of(options_);
}

}  // namespace rbee::nn
