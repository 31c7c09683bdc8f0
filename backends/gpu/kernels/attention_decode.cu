// Attention of few queries over many keys (decoding), dense and paged. A query's keys are cut
// into splits. A block takes one split of one query for all heads that share a key head, so that
// it reads keys and values once, 16 or 8 bytes a lane. A block's waves work alone and
// meet at the end; the block of a query that ends last merges the splits. Memory bandwidth
// limits it.
#include "backends/gpu/kernels/attention_decode.h"

#include "backends/gpu/kernels/attention_merge.h"

namespace rbee {
namespace gpu {

template <class KV, int kWave, int kLanes, int kPacks, int kHeads>
RB_DEVICE void attention_decode(const AttentionParams& p) {
  decode<LaneDecoder<DecodeTile<KV, kWave, kLanes, kPacks, kHeads>>>(p);
}

// Blocks that a multiprocessor should hold, so that enough loads are under way: blocks_each() in
// ops/attention_decode.cc.
constexpr int blocks_held(int heads, int packs) {
  return heads * packs <= 4 ? 4 : 3;
}

// attention_decode_<cache>_d<largest head>_h<heads that share keys>
#define RB_HEADS(lanes, wave, dtype, T, dim, heads, kLanes, kPacks)                     \
  RB_KERNEL_AHEAD(attention_decode_##dtype##_d##dim##_h##heads##_##wave, kWaves* lanes, \
                  blocks_held(heads, kPacks), AttentionParams,                          \
                  (attention_decode<T, lanes, kLanes, kPacks, heads>(p)))
#define RB_SHORT(dtype, T, heads)                 \
  RB_WAVES(RB_HEADS, dtype, T, 64, heads, 8, 1)   \
  RB_WAVES(RB_HEADS, dtype, T, 128, heads, 16, 1) \
  RB_WAVES(RB_HEADS, dtype, T, 256, heads, 32, 1)
RB_SHORT(f16, f16, 1)
RB_SHORT(f16, f16, 4)
RB_SHORT(f16, f16, 8)
RB_SHORT(bf16, bf16, 1)
RB_SHORT(bf16, bf16, 4)
RB_SHORT(bf16, bf16, 8)
RB_SHORT(f8e4m3, f8e4m3, 1)
RB_SHORT(f8e4m3, f8e4m3, 4)
RB_SHORT(f8e4m3, f8e4m3, 8)
RB_SHORT(q8_0, PageCode, 1)
RB_SHORT(q8_0, PageCode, 4)
RB_SHORT(q8_0, PageCode, 8)
RB_WAVES(RB_HEADS, f32, float, 64, 1, 16, 1)
RB_WAVES(RB_HEADS, f32, float, 64, 4, 16, 1)
RB_WAVES(RB_HEADS, f32, float, 128, 1, 32, 1)
RB_WAVES(RB_HEADS, f32, float, 128, 4, 32, 1)
RB_WAVES(RB_HEADS, f32, float, 256, 1, 32, 2)
RB_WAVES(RB_HEADS, f32, float, 256, 4, 32, 2)

}  // namespace gpu
}  // namespace rbee
