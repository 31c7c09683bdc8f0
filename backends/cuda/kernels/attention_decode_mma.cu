// Attention of few queries over many 16-bit keys on tensor cores, sm_80 and later (PTX ISA:
// mma.m16n8k16): as in attention_decode.cu, but one product serves up to 8 heads that share a key
// head. So memory stays the limit also if a query has a group of heads.
//
// Scores are q (heads down, 8 of 16 rows) times keys (8 across); results are values (elements down)
// times weights (heads across). The instruction adds over its depth in any order, and its first
// operand's rows have no fixed order. So a lane reads 8 neighbouring elements of keys and of
// values straight into registers, and passes pairs of them in place of elements that lie apart.
#include "backends/cuda/kernels/attention_in_out.h"
#include "backends/gpu/kernels/attention_merge.h"
#include "backends/gpu/kernels/attention_softmax.h"

namespace rbee {
namespace gpu {

template <class T, int kHeadDim>
struct MmaDecodeTile {
  using Cached = T;
  static constexpr int kWave = 32;
  static constexpr int kHeads = 8;
  static constexpr int kDim = kHeadDim;
  static constexpr int kKeys = 2048 / kDim;  // of a wave at a time: 4 KiB
  static constexpr int kKeyTiles = kKeys / 8;
  static constexpr int kChunks = kDim / 32;  // of a key, that four lanes read at once
  static constexpr int kSpans = kDim / 64;   // of a value, that eight lanes read at once
  static constexpr int kDeep = kKeys / 16;   // products along the keys
  static constexpr int kOuts = kDim / 16;    // and 16 elements each

  // What the waves end with.
  struct Ends {
    float top[kWaves][kHeads];
    float sum[kWaves][kHeads];
    float out[kWaves][kHeads][kDim];
  };
  struct Shared {
    Ends ends;
  };
};

// AnyHeadResult for results of T whose neighbours adjoin.
template <class T>
struct HeadResult {
  RB_DEVICE static void write(const AttentionParams& p, i64 head, int pack, const Pack<float>& sums,
                              float sum) {
    const float scale = sum == 0 ? 0.0f : fast_reciprocal(sum);
    uint2 words;
    words.x = round_pair<T>(sums.values[0] * scale, sums.values[1] * scale);
    words.y = round_pair<T>(sums.values[2] * scale, sums.values[3] * scale);
    *reinterpret_cast<uint2*>(static_cast<T*>(p.y) + head + 4 * pack) = words;
  }
};

template <class OfTile>
class MmaDecoder {
 public:
  using Tile = OfTile;
  using T = typename Tile::Cached;
  using Result = HeadResult<T>;

  RB_DEVICE MmaDecoder(const AttentionParams& p, const DecodeWork& work,
                       typename Tile::Shared& shared)
      : p_(p),
        work_(work),
        shared_(shared),
        lane_(thread_x() % 32),
        wave_(thread_x() / 32),
        places_(p, work, lane_),
        rule_(score_rule(p)) {}

  // All threads of the block call it.
  RB_DEVICE void run() {
    if (work_.keys.first < work_.keys.end) {
      pass_keys();
    } else {
      wait_for_previous_kernel();
    }
    finish();
  }

 private:
  using Places = CachePlaces<T, Tile::kKeys>;
  using Keys = u32[Tile::kKeyTiles][Tile::kChunks][4];
  using Values = u32[Tile::kDeep][4][Tile::kSpans][4];  // of keys 2t, 2t + 1, 2t + 8, 2t + 9

  // The lane's row of an operand, a head, key or element; and its pair along the other axis.
  RB_DEVICE int row() const { return static_cast<int>(lane_) / 4; }
  RB_DEVICE int pair() const { return static_cast<int>(lane_) % 4; }

  RB_DEVICE void pass_keys() {
    constexpr i64 kStride = static_cast<i64>(kWaves) * Tile::kKeys;
    i64 key = work_.keys.first + wave_ * Tile::kKeys;
    typename Places::Place place = places_.find(key);
    // The next kernel's weights come before the loads after the wait.
    prefetch_line(p_.k, places_.keys(place));
    prefetch_line(p_.v, places_.values(place));
    wait_for_previous_kernel();
    Keys keys;
    Values values;
    load_keys(places_.keys(place), keys);
    load_values(places_.values(place), values);
    load_queries();
    place = places_.find(key + kStride);
    for (; key < work_.keys.end; key += kStride) {
      const bool more = key + kStride < work_.keys.end;
      float scores[Tile::kKeyTiles][4] = {};
      multiply(keys, scores);
      if (more) load_keys(places_.keys(place), keys);
      u32 weights[Tile::kKeyTiles];
      weigh(key, scores, weights);
      add(values, weights);
      if (more) load_values(places_.values(place), values);
      place = places_.find(key + 2 * kStride);
    }
  }

  // `before`: as load_keys(). The lanes with one key take its lines in turn.
  RB_DEVICE void prefetch_line(const void* base, u32 before) const {
    constexpr u32 kLine = 128;
    static_assert(Tile::kDim * sizeof(T) * Tile::kKeys == 32 * kLine, "a line for each lane");
    const u8* line =
        static_cast<const u8*>(base) + static_cast<u64>(before) * 16 + lane_ / Tile::kKeys * kLine;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
  }

  RB_DEVICE void load_queries() {
    const i64 from = query_offset(p_.q_at, work_.span, work_.first_head + row(), work_.query);
#pragma unroll
    for (int c = 0; c < Tile::kChunks; ++c) {
      uint4 found = {0, 0, 0, 0};
      if (row() < work_.heads) {
        found = *reinterpret_cast<const uint4*>(static_cast<const T*>(p_.q) + from + c * 32 +
                                                pair() * 8);
      }
      queries_[c][0] = found.x;
      queries_[c][1] = found.y;
      queries_[c][2] = found.z;
      queries_[c][3] = found.w;
    }
  }

  // `before`: the place of this lane's key, in runs of 8.
  RB_DEVICE void load_keys(u32 before, Keys& to) const {
#pragma unroll
    for (int tile = 0; tile < Tile::kKeyTiles; ++tile) {
      const u64 first = shuffle<32>(before, tile * 8 + row());
#pragma unroll
      for (int c = 0; c < Tile::kChunks; ++c) {
        load_once(static_cast<const u8*>(p_.k) + (first + c * 4 + pair()) * 16, to[tile][c]);
      }
    }
  }
  RB_DEVICE void load_values(u32 before, Values& to) const {
#pragma unroll
    for (int deep = 0; deep < Tile::kDeep; ++deep) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const u64 first = shuffle<32>(before, deep * 16 + i / 2 * 8 + pair() * 2 + i % 2);
#pragma unroll
        for (int span = 0; span < Tile::kSpans; ++span) {
          load_once(static_cast<const u8*>(p_.v) + (first + span * 8 + row()) * 16,
                    to[deep][i][span]);
        }
      }
    }
  }

  // scores[tile][0..1]: of head row() and the tile's keys 2 * pair() and the next.
  RB_DEVICE void multiply(const Keys& keys, float (&scores)[Tile::kKeyTiles][4]) const {
#pragma unroll
    for (int c = 0; c < Tile::kChunks; ++c) {
#pragma unroll
      for (int half = 0; half < 4; half += 2) {
        const u32 a[4] = {queries_[c][half], 0, queries_[c][half + 1], 0};
#pragma unroll
        for (int tile = 0; tile < Tile::kKeyTiles; ++tile) {
          multiply_add<T>(scores[tile], a, keys[tile][c][half], keys[tile][c][half + 1]);
        }
      }
    }
  }

  // Scores of products, in base 2; nothing for keys past the last. Most models' rules come first:
  // the device must fetch skipped instructions, too.
  RB_DEVICE void score(i64 first, const float (&products)[Tile::kKeyTiles][4],
                       float (&scores)[Tile::kKeyTiles][2]) const {
    const i32 own = pair() * 2;  // after the first
    const i32 left = static_cast<i32>(work_.keys.end - first) - own;
    const auto each = [&](const auto& of) {
#pragma unroll
      for (int tile = 0; tile < Tile::kKeyTiles; ++tile) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const i32 at = tile * 8 + i;
          scores[tile][i] = at < left ? of(at, products[tile][i]) : -infinity();
        }
      }
    };
    if (__builtin_expect(!rule_.shaped, 1)) {
      each([&](i32, float product) { return product * rule_.factor; });
    } else {
      const int head = work_.first_head + (row() < work_.heads ? row() : 0);
      const TileWork work{work_.span, 0, 0, head, work_.kv_head};
      each([&](i32 at, float product) {
        return shaped_score(p_, work, work_.query, first + own + at, product);
      });
    }
  }

  // Weights relative to the new top, two keys in a word; rescales the results so far.
  RB_DEVICE void weigh(i64 first, const float (&products)[Tile::kKeyTiles][4],
                       u32 (&weights)[Tile::kKeyTiles]) {
    float scores[Tile::kKeyTiles][2];
    score(first, products, scores);
    float top = top_;
#pragma unroll
    for (int tile = 0; tile < Tile::kKeyTiles; ++tile) {
      top = MaxNumber{}(top, MaxNumber{}(scores[tile][0], scores[tile][1]));
    }
    top = row_max(top);
    if (__any_sync(~0u, top > top_)) keep(top);
    // Heads without a number so far: weights are 2^-inf = 0, or NaN.
    const float base = top > -infinity() ? top : 0.0f;
#pragma unroll
    for (int tile = 0; tile < Tile::kKeyTiles; ++tile) {
      float found[2];
      for (int i = 0; i < 2; ++i) {
        found[i] = fast_exp2(scores[tile][i] - base);
        sum_ += found[i];
      }
      weights[tile] = round_pair<T>(found[0], found[1]);
    }
  }

  // Results and sums relative to a new top. Heads lie across.
  RB_DEVICE void keep(float top) {
    const float factor = top_ > -infinity() ? fast_exp2(top_ - top) : 0.0f;
    sum_ *= factor;
    top_ = top;
    const float first = shuffle<32>(factor, pair() * 8);
    const float second = shuffle<32>(factor, pair() * 8 + 4);
#pragma unroll
    for (int out = 0; out < Tile::kOuts; ++out) {
      outs_[out][0] *= first;
      outs_[out][1] *= second;
      outs_[out][2] *= first;
      outs_[out][3] *= second;
    }
  }

  // Element `of` of the 8 that the lane read in each span, of two neighbouring keys.
  RB_DEVICE static u32 two_keys(const u32 (&keys)[4][Tile::kSpans][4], int key, int of) {
    const int span = of / 8, word = of % 8 / 2;
    return __byte_perm(keys[key][span][word], keys[key + 1][span][word],
                       of % 2 == 0 ? 0x5410 : 0x7632);
  }

  RB_DEVICE void add(const Values& values, const u32 (&weights)[Tile::kKeyTiles]) {
#pragma unroll
    for (int deep = 0; deep < Tile::kDeep; ++deep) {
#pragma unroll
      for (int out = 0; out < Tile::kOuts; ++out) {
        const u32 a[4] = {two_keys(values[deep], 0, out), two_keys(values[deep], 0, upper(out)),
                          two_keys(values[deep], 2, out), two_keys(values[deep], 2, upper(out))};
        multiply_add<T>(outs_[out], a, weights[2 * deep], weights[2 * deep + 1]);
      }
    }
  }
  // A product's rows 8 to 15.
  RB_DEVICE static constexpr int upper(int out) { return out + Tile::kOuts; }
  // The element of a head for row row() of such a product.
  RB_DEVICE int element(int of) const { return of / 8 * 64 + row() * 8 + of % 8; }

  RB_DEVICE void finish() {
    typename Tile::Ends& ends = shared_.ends;
#pragma unroll
    for (int out = 0; out < Tile::kOuts; ++out) {
      for (int i = 0; i < 2; ++i) {
        ends.out[wave_][pair() * 2 + i][element(out)] = outs_[out][i];
        ends.out[wave_][pair() * 2 + i][element(upper(out))] = outs_[out][2 + i];
      }
    }
    float sum = sum_ + shuffle_xor<32>(sum_, 1);
    sum += shuffle_xor<32>(sum, 2);
    if (pair() == 0) {
      ends.sum[wave_][row()] = sum;
      ends.top[wave_][row()] = top_;
    }
    barrier();
  }

  const AttentionParams& p_;
  const DecodeWork& work_;
  typename Tile::Shared& shared_;
  u32 lane_, wave_;
  Places places_;
  ScoreRule rule_;
  u32 queries_[Tile::kChunks][4];
  float outs_[Tile::kOuts][4] = {};
  float top_ = -infinity();  // of head row(); sum_ of this lane's keys
  float sum_ = 0;
};

// Blocks that a multiprocessor should hold: as in ops/attention_decode_mma.cc.
#define RB_MMA_DECODE(dtype, T, dim, blocks)                                                   \
  RB_KERNEL_AHEAD(attention_decode_mma_##dtype##_d##dim, kWaves * 32, blocks, AttentionParams, \
                  (decode<MmaDecoder<MmaDecodeTile<T, dim>>>(p)))
RB_MMA_DECODE(f16, f16, 64, 3)
RB_MMA_DECODE(f16, f16, 128, 3)
RB_MMA_DECODE(bf16, bf16, 64, 3)
RB_MMA_DECODE(bf16, bf16, 128, 3)

}  // namespace gpu
}  // namespace rbee
