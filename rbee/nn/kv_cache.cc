#include "rbee/nn/kv_cache.h"

#include <algorithm>
#include <span>

#include "rbee/ops/attention.h"

namespace rbee::nn {
namespace {

constexpr const char* kOp = "kv_cache";

int64_t count(const KvCacheOptions& options) {
  return static_cast<int64_t>(options.layers.size());
}

std::span<const CacheLayer> part(const KvCacheOptions& options, int64_t first, int64_t end) {
  return std::span(options.layers)
      .subspan(static_cast<size_t>(first), static_cast<size_t>(end - first));
}

int64_t bytes_of(const KvCacheOptions& options) {
  const int64_t layers = count(options);
  return options.blocks * options.block_size *
             KvCache::token_bytes(options, 0, options.one_layer ? 1 : layers) +
         options.state_slots * KvCache::state_bytes(options, 0, layers);
}

void check_layer(const CacheLayer& layer) {
  const StateShape& state = layer.state;
  if (!state.any() || layer.kv_heads != 0) {
    check(layer.kv_heads > 0, kOp, "kv_heads is ", layer.kv_heads, ", wanted at least 1");
    check(layer.head_dim > 0, kOp, "head_dim is ", layer.head_dim, ", wanted at least 1");
  }
  if (!state.any()) return;
  check(std::min({state.channels, state.heads, state.key_dim, state.value_dim}) > 0, kOp,
        "a state has ", state.channels, " channels and ", state.heads, " heads of ", state.key_dim,
        " by ", state.value_dim, ", wanted at least 1 each");
}

}  // namespace

int64_t StateShape::bytes() const {
  return (taps * channels + heads * key_dim * value_dim) * static_cast<int64_t>(sizeof(float));
}

bool KvCacheOptions::has_states() const {
  return std::ranges::any_of(layers, [](const CacheLayer& layer) { return layer.state.any(); });
}

int64_t KvCache::token_bytes(const KvCacheOptions& options, int64_t first, int64_t end) {
  // Not row_bytes(): whether the type fits the heads is for whoever makes a cache.
  const DTypeInfo& type = info(options.dtype);
  int64_t numbers = 0;
  for (const CacheLayer& layer : part(options, first, end)) {
    numbers += layer.kv_heads * layer.head_dim;
  }
  return (options.one_tensor ? 1 : 2) * numbers * type.block_bytes / type.block_size;
}

int64_t KvCache::state_bytes(const KvCacheOptions& options, int64_t first, int64_t end) {
  int64_t bytes = 0;
  for (const CacheLayer& layer : part(options, first, end)) bytes += layer.state.bytes();
  return bytes;
}

KvCache::KvCache(const KvCacheOptions& options, Device& device) : options_(options) {
  check(!options.layers.empty(), kOp, "layers is 0, wanted at least 1");
  for (const CacheLayer& layer : options.layers) check_layer(layer);
  check(options.blocks > 0, kOp, "blocks is ", options.blocks, ", wanted at least 1");
  check(options.block_size > 0, kOp, "block_size is ", options.block_size, ", wanted at least 1");
  check(!options.has_states() || options.state_slots > 0, kOp, "state_slots is ",
        options.state_slots, ", wanted at least 1");
  try {
    for (int64_t layer = 0; layer < count(options); ++layer) add_layer(layer, device);
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory) throw;
    fail(Code::out_of_memory, kOp, options.blocks * options.block_size, " tokens in ",
         options.dtype, " take ", bytes_of(options) >> 20, " MiB (", bytes_of(options),
         " bytes): ", error.what());
  }
}

void KvCache::add_layer(int64_t index, Device& device) {
  const CacheLayer& layer = options_.layers[static_cast<size_t>(index)];
  const bool on_host = options_.host != nullptr && index < options_.host_layers;
  Device& place = on_host ? *options_.host : device;
  const StateShape& state = layer.state;
  LayerState& kept = states_.emplace_back();
  if (state.any()) {
    const int64_t slots = options_.state_slots;
    // A bench may begin behind tokens that were never evaluated: what it finds must be numbers.
    kept.tail = zeros({slots, state.taps, state.channels}, DType::f32, place);
    kept.matrix = zeros({slots, state.heads, state.key_dim, state.value_dim}, DType::f32, place);
  }
  if (layer.kv_heads == 0 || (options_.one_layer && index > 0)) {
    const bool shared = layer.kv_heads > 0;
    keys_.push_back(shared ? keys_.front() : Tensor{});
    values_.push_back(shared ? values_.front() : Tensor{});
    return;
  }
  const Shape shape{options_.blocks, layer.kv_heads, options_.block_size, layer.head_dim};
  const auto make = [&] {
    return empty_cache(shape, options_.dtype, place, !on_host && options_.in_host_memory);
  };
  keys_.push_back(make());
  values_.push_back(options_.one_tensor ? keys_.back() : make());
}

int64_t KvCache::bytes() const {
  return bytes_of(options_);
}

}  // namespace rbee::nn
