// Attention of many queries over dense keys and values on Hopper (sm_90a; attention_consumer.h).
// The copy engine fetches whole tiles, so one thread can ask for them and the other threads keep
// the multiprocessor's issue slots. Prompts of pictures are shorter than a tile: a block fetches
// such keys once. Then it is a single warpgroup, and several blocks share a
// multiprocessor.
#include "backends/cuda/kernels/attention_consumer.h"
#include "backends/cuda/kernels/tensor_copies.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace rbee {
namespace gpu {

// One thread's work.
template <class Shape>
class TmaProducer {
 public:
  RB_DEVICE TmaProducer(const TensorAttentionParams& p, const TileWork& work,
                        WgmmaShared<Shape>& shared)
      : p_(p),
        shared_(shared),
        head_(static_cast<int>(work.kv_head)),
        entry_(static_cast<int>(work.span.index)) {}

  RB_DEVICE void fetch_keys(int stage, int key) const {
    fetch(p_.keys, shared_.k[stage], Shape::kQkTiles, &shared_.k_full[stage], key);
  }
  RB_DEVICE void fetch_values(int stage, int key) const {
    fetch(p_.values, shared_.v[stage], Shape::kVTiles, &shared_.v_full[stage], key);
  }

  RB_DEVICE void run(const TileKeys& keys) const {
    int stage = 0;
    u32 parity = 1;  // the phase before a barrier's first counts as over
    for (i64 key = keys.first; key < keys.end; key += Shape::kKeys) {
      wait_phase(&shared_.k_empty[stage], parity);
      fetch_keys(stage, static_cast<int>(key));
      wait_phase(&shared_.v_empty[stage], parity);
      fetch_values(stage, static_cast<int>(key));
      stage = (stage + 1) % Shape::kStages;
      if (stage == 0) parity ^= 1;
    }
  }

 private:
  // Keys and elements outside the tensor come as zeros.
  RB_DEVICE void fetch(const TensorMap& map, unsigned char* to, int tiles, u64* full,
                       int key) const {
    arrive_with_bytes(full, static_cast<u32>(tiles * Shape::kTileBytes));
#pragma unroll
    for (int i = 0; i < tiles; ++i) {
      copy_box<false>(shared_address(to) + static_cast<u32>(i * Shape::kTileBytes), map, full,
                      i * 64, key, head_, entry_);
    }
  }

  const TensorAttentionParams& p_;
  WgmmaShared<Shape>& shared_;
  const int head_, entry_;
};

template <class T, class Shape>
RB_DEVICE void attention_tma(const TensorAttentionParams& p) {
  extern __shared__ unsigned char dynamic[];
  auto& shared = aligned_shared<WgmmaShared<Shape>>(dynamic);
  if (thread_x() == 0) {
    start_stages(shared, 1);
    publish_barriers();
    prefetch_map(p.keys);
    prefetch_map(p.values);
  }
  barrier();
  wait_for_previous_kernel();
  TileWork work;
  if (!find_tile(p.attention, Shape::kRows, work)) return;
  work.span = dense_span(p.attention, work.span.index);  // constants, if they are known
  const TileKeys keys = tile_keys(p.attention, work);
  const int group = static_cast<int>(thread_x()) / kGroup;
  constexpr bool kThree = Shape::kConsumers == 3;
  if (group == 0) {
    shrink_registers<kThree ? 32 : 24>();
    if (thread_x() == 0) TmaProducer<Shape>(p, work, shared).run(keys);
  } else {
    grow_registers<kThree ? 160 : 240>();
    WgmmaConsumer<T, Shape>(p.attention, work, shared, group - 1).run(keys);
  }
}

template <class T, class Shape>
RB_DEVICE void attention_short(const TensorAttentionParams& p) {
  extern __shared__ unsigned char dynamic[];
  auto& shared = aligned_shared<WgmmaShared<Shape>>(dynamic);
  if (thread_x() == 0) {
    start_stages(shared, 1);
    publish_barriers();
  }
  barrier();
  wait_for_previous_kernel();
  TileWork work;
  if (!find_tile(p.attention, Shape::kRows, work)) return;
  work.span = dense_span(p.attention, work.span.index);  // constants, if they are known
  if (thread_x() == 0) {
    const TmaProducer<Shape> producer(p, work, shared);
    producer.fetch_keys(0, 0);
    producer.fetch_values(0, 0);
  }
  TileKeys keys = tile_keys(p.attention, work);
  keys.first = 0;  // as fetched
  WgmmaConsumer<T, Shape>(p.attention, work, shared, 0).run(keys);
}

// attention_tma_<dtype>_d<largest head>: ops/attention_tma.cc chooses; _r<queries> of a block, if
// three consumers have enough registers. A multiprocessor holds one block, whose bound on
// registers is what its warpgroups share out again.
#define RB_LONG(dtype, T, name, qk, v, keys, consumers)                                 \
  extern "C" __global__ void __launch_bounds__((consumers + 1) * kGroup, 1)             \
      attention_tma_##dtype##_##name(const __grid_constant__ TensorAttentionParams p) { \
    attention_tma<T, WgmmaShape<qk, v, keys, consumers, 2, false>>(p);                  \
  }
#define RB_TMA(dtype, T, qk, v, keys) RB_LONG(dtype, T, d##v, qk, v, keys, 2)
// attention_tma_<dtype>_short_d<largest head>: up to 80 keys.
#define RB_SHORT(dtype, T, qk, v, blocks)                                                   \
  extern "C" __global__ void __launch_bounds__(kGroup, blocks)                              \
      attention_tma_##dtype##_short_d##v(const __grid_constant__ TensorAttentionParams p) { \
    attention_short<T, WgmmaShape<qk, v, 80, 1, 1, false>>(p);                              \
  }
#define RB_ALL(dtype, T)                      \
  RB_TMA(dtype, T, 48, 40, 128)               \
  RB_LONG(dtype, T, d64_r192, 64, 64, 128, 3) \
  RB_TMA(dtype, T, 64, 64, 128)               \
  RB_TMA(dtype, T, 80, 80, 128)               \
  RB_TMA(dtype, T, 128, 128, 128)             \
  RB_TMA(dtype, T, 160, 160, 64)              \
  RB_TMA(dtype, T, 256, 256, 64)              \
  RB_SHORT(dtype, T, 48, 40, 3)               \
  RB_SHORT(dtype, T, 64, 64, 3)               \
  RB_SHORT(dtype, T, 80, 80, 3)               \
  RB_SHORT(dtype, T, 160, 160, 2)
RB_ALL(f16, f16)
RB_ALL(bf16, bf16)

}  // namespace gpu
}  // namespace rbee

#endif
