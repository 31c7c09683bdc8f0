#include "rbee/nn/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "rbee/ops/elementwise.h"
#include "tests/checkpoints/checkpoint_files.h"

namespace rbee::test {
namespace {

nn::KvCacheOptions small() {
  return {.layers = std::vector(3, nn::CacheLayer{.kv_heads = 2, .head_dim = 16}),
          .blocks = 5,
          .block_size = 4};
}

TEST(KvCache, ShapesAndBytes) {
  for (const auto& [dtype, size] :
       {std::pair{DType::f32, 4}, {DType::f16, 2}, {DType::bf16, 2}, {DType::f8e4m3, 1}}) {
    nn::KvCacheOptions options = small();
    options.dtype = dtype;
    nn::KvCache cache(options, cpu_device());
    for (int64_t layer = 0; layer < 3; ++layer) {
      for (const Tensor& x : {cache.keys(layer), cache.values(layer)}) {
        EXPECT_EQ(x.shape(), (Shape{5, 2, 4, 16}));
        EXPECT_EQ(x.dtype(), dtype);
      }
    }
    EXPECT_EQ(cache.blocks(), 5);
    EXPECT_EQ(cache.block_size(), 4);
    EXPECT_EQ(cache.bytes(), 2 * 3 * (5 * 2 * 4 * 16) * size);
  }
}

TEST(KvCache, Q8TakesAsManyBytesAsBlocksAndIsNoTensorForOtherOperations) {
  nn::KvCacheOptions options = small();
  for (nn::CacheLayer& layer : options.layers) layer.head_dim = 64;
  options.dtype = DType::q8_0;
  nn::KvCache cache(options, cpu_device());
  EXPECT_EQ(cache.bytes(), 2 * 3 * (5 * 2 * 4 * 64) / 32 * 34);
  expect_error(Code::invalid_argument, {"packed"}, [&] { cast(cache.keys(0), DType::f32); });
}

TEST(KvCache, OfOneTensorHoldsValuesAsKeys) {
  nn::KvCacheOptions options = small();
  options.dtype = DType::f32;
  options.one_tensor = true;
  nn::KvCache cache(options, cpu_device());
  EXPECT_EQ(cache.bytes(), 3 * (5 * 2 * 4 * 16) * 4);
  EXPECT_EQ(cache.keys(1).data<float>(), cache.values(1).data<float>());
  EXPECT_NE(cache.keys(1).data<float>(), cache.keys(2).data<float>());
}

TEST(KvCache, OfOneLayerGivesAllTheSameMemory) {
  nn::KvCacheOptions options = small();
  options.dtype = DType::f32;
  options.one_layer = true;
  nn::KvCache cache(options, cpu_device());
  EXPECT_EQ(cache.bytes(), 2 * (5 * 2 * 4 * 16) * 4);
  EXPECT_EQ(cache.keys(0).data<float>(), cache.keys(2).data<float>());
  EXPECT_EQ(cache.values(0).data<float>(), cache.values(2).data<float>());
  EXPECT_NE(cache.keys(2).data<float>(), cache.values(2).data<float>());
}

TEST(KvCache, DefaultsAreHalvesInBlocksOf32) {
  const nn::KvCacheOptions options;
  EXPECT_EQ(options.dtype, DType::f16);
  EXPECT_EQ(options.block_size, 32);
}

TEST(KvCache, LayersKeysAndValuesShareNoMemory) {
  nn::KvCacheOptions options = small();
  options.dtype = DType::f32;
  nn::KvCache cache(options, cpu_device());
  std::vector<Tensor*> all;
  for (int64_t layer = 0; layer < 3; ++layer) {
    all.insert(all.end(), {&cache.keys(layer), &cache.values(layer)});
  }
  float number = 0;
  for (Tensor* x : all) std::fill_n(x->data<float>(), x->numel(), number++);
  number = 0;
  for (const Tensor* x : all) {
    EXPECT_EQ(std::count(x->data<float>(), x->data<float>() + x->numel(), number), x->numel());
    ++number;
  }
}

constexpr nn::CacheLayer kStates{
    .state = {.taps = 3, .channels = 10, .heads = 2, .key_dim = 4, .value_dim = 5}};

// Layers may differ in their heads, and keep states instead of keys.
TEST(KvCache, EachLayerKeepsWhatItAsksFor) {
  nn::KvCacheOptions options = small();
  options.layers[0].kv_heads = 1;
  options.layers[0].head_dim = 32;
  options.layers[1] = kStates;
  options.state_slots = 7;
  nn::KvCache cache(options, cpu_device());
  EXPECT_EQ(cache.keys(0).shape(), (Shape{5, 1, 4, 32}));
  EXPECT_EQ(cache.values(2).shape(), (Shape{5, 2, 4, 16}));
  EXPECT_FALSE(cache.keys(1).defined() || cache.values(1).defined());
  EXPECT_EQ(cache.state(1).tail.shape(), (Shape{7, 3, 10}));
  EXPECT_EQ(cache.state(1).matrix.shape(), (Shape{7, 2, 4, 5}));
  EXPECT_EQ(cache.state(1).matrix.dtype(), DType::f32);
  EXPECT_FALSE(cache.state(0).tail.defined());
  EXPECT_EQ(nn::KvCache::token_bytes(options, 0, 2), 2 * 32 * 2);
  EXPECT_EQ(nn::KvCache::token_bytes(options, 0, 3), 2 * (32 + 2 * 16) * 2);
  EXPECT_EQ(nn::KvCache::state_bytes(options, 0, 3), (3 * 10 + 2 * 4 * 5) * 4);
  EXPECT_EQ(cache.bytes(), 5 * 4 * 2 * (32 + 2 * 16) * 2 + 7 * (3 * 10 + 2 * 4 * 5) * 4);
}

TEST(KvCache, ErrorsNameTheSize) {
  const auto refuse = [](const char* part, void (*change)(nn::KvCacheOptions&)) {
    nn::KvCacheOptions options = small();
    change(options);
    expect_error(Code::invalid_argument, {part}, [&] { nn::KvCache(options, cpu_device()); });
  };
  refuse("layers is 0", [](nn::KvCacheOptions& o) { o.layers.clear(); });
  refuse("kv_heads is -1", [](nn::KvCacheOptions& o) { o.layers[1].kv_heads = -1; });
  refuse("head_dim is 0", [](nn::KvCacheOptions& o) { o.layers[2].head_dim = 0; });
  refuse("kv_heads is 0", [](nn::KvCacheOptions& o) { o.layers[0] = {}; });
  refuse("0 channels", [](nn::KvCacheOptions& o) { o.layers[0].state.taps = 3; });
  refuse("state_slots is 0", [](nn::KvCacheOptions& o) { o.layers[0] = kStates; });
  refuse("blocks is 0", [](nn::KvCacheOptions& o) { o.blocks = 0; });
  refuse("block_size is 0", [](nn::KvCacheOptions& o) { o.block_size = 0; });
  refuse("not q4_0", [](nn::KvCacheOptions& o) { o.dtype = DType::q4_0; });
  refuse("heads of 16 elements do not fit q8_0",
         [](nn::KvCacheOptions& o) { o.dtype = DType::q8_0; });
  refuse("not i32", [](nn::KvCacheOptions& o) { o.dtype = DType::i32; });
  // More elements than a 64-bit number can count.
  refuse("", [](nn::KvCacheOptions& o) { o.blocks = int64_t{1} << 61; });
}

}  // namespace
}  // namespace rbee::test
