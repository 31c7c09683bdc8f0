// Attention of few queries over many keys (decoding), dense and paged. The keys of a query are cut
// into splits; a block takes one split of one query for all heads that share a key head, so that
// keys and values are read from memory once, 16 bytes a lane. Waves of a block work alone and meet
// at the end. Memory bandwidth limits it.
#include "backends/gpu/kernels/attention.h"

namespace rbee {
namespace gpu {

constexpr int kWaves = 4;

// kLanes neighbouring lanes read a key of kLanes * kPacks packs; a step of a wave is kSlots keys,
// kSteps steps are a tile.
template <class KV, int kWave, int kLanes, int kPacks, int kHeads>
struct DecodeTile {
  static constexpr int kCount = Pack<KV>::kCount;
  static constexpr int kElements = kPacks * kCount;  // of a head, held by a lane
  static constexpr int kDim = kLanes * kElements;
  static constexpr int kSlots = kWave / kLanes;
  static constexpr int kSteps = kHeads == 1 ? 8 : 4;
  static constexpr int kKeys = kSlots * kSteps;
  // Scores of a lane before and after they are summed over the kLanes lanes.
  static constexpr int kParts = kSteps * kHeads;
  static constexpr int kScores = kParts > kLanes ? kParts / kLanes : 1;

  struct Shared {
    float weights[kWaves][kKeys][kHeads];
    float keep[kWaves][kHeads];
    float top[kWaves][kHeads];
    float sum[kWaves][kHeads];
    float out[kWaves][kHeads][kDim];
  };
};

// Sums kCount of `parts` over the lanes that differ in the bits of kMask and below, halving them
// while there are several: of two halves a lane keeps one and hands the other to its partner. Which
// parts a lane ends with, part_of says.
template <int kWave, int kMask, int kCount, int kParts>
RB_DEVICE void sum_parts(float (&parts)[kParts], u32 lane) {
  if constexpr (kMask > 0 && kCount == 1) {
    parts[0] += shuffle_xor<kWave>(parts[0], kMask);
    sum_parts<kWave, kMask / 2, 1>(parts, lane);
  } else if constexpr (kMask > 0) {
    constexpr int kHalf = kCount / 2;
    const bool upper = (lane & static_cast<u32>(kMask)) != 0;
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const float mine = upper ? parts[i + kHalf] : parts[i];
      const float theirs = upper ? parts[i] : parts[i + kHalf];
      parts[i] = mine + shuffle_xor<kWave>(theirs, kMask);
    }
    sum_parts<kWave, kMask / 2, kHalf>(parts, lane);
  }
}
template <int kMask, int kCount>
RB_DEVICE int part_of(u32 lane, int score) {
  if constexpr (kMask == 0 || kCount == 1) {
    return score;
  } else {
    const int upper = (lane & static_cast<u32>(kMask)) != 0 ? kCount / 2 : 0;
    return upper + part_of<kMask / 2, kCount / 2>(lane, score);
  }
}

// Every lane gets combine() over the lanes that have parts of the same head: lane bits from kSame
// on tell parts apart (the ones below repeat them), and of those [kSame, kStep) tell heads apart.
template <int kWave, int kSame, int kStep, int kMask = kWave / 2, class Combine>
RB_DEVICE float reduce_head(float x, Combine combine) {
  if constexpr (kMask < kSame || kMask == 0) {
    return x;
  } else {
    if constexpr (kMask >= kStep) x = combine(x, shuffle_xor<kWave>(x, kMask));
    return reduce_head<kWave, kSame, kStep, kMask / 2>(x, combine);
  }
}

// A block's query, heads and keys.
struct DecodeWork {
  AttentionSpan span;
  i64 query;
  i32 kv_head, first_head, heads;
  KeyRange keys;
};

template <int kHeads>
RB_DEVICE DecodeWork decode_work(const AttentionParams& p, int tile) {
  DecodeWork work;
  const i64 row = block_x();
  if (p.block_table != nullptr) {
    work.span = paged_span(p, sequence_of(p, row));
    work.query = row - work.span.first_row;
  } else {
    work.span = dense_span(p, row / p.q_len);
    work.query = row % p.q_len;
  }
  const int group = p.heads / p.kv_heads;
  const int parts = (group + kHeads - 1) / kHeads;
  work.kv_head = static_cast<i32>(block_y()) / parts;
  const int begin = static_cast<i32>(block_y()) % parts * kHeads;
  work.first_head = work.kv_head * group + begin;
  work.heads = group - begin < kHeads ? group - begin : kHeads;
  // Splits are equal shares of what the query sees, in whole tiles of all waves.
  const KeyRange all = visible_keys(p, work.span, work.query);
  const i64 share = ((all.end - all.first + p.splits - 1) / p.splits + tile - 1) / tile * tile;
  work.keys.first = all.first + block_z() * share;
  work.keys.end = work.keys.first + share < all.end ? work.keys.first + share : all.end;
  return work;
}

template <class KV, int kWave, int kLanes, int kPacks, int kHeads>
class Decoder {
 public:
  using Tile = DecodeTile<KV, kWave, kLanes, kPacks, kHeads>;

  RB_DEVICE Decoder(const AttentionParams& p, const DecodeWork& work, typename Tile::Shared& shared)
      : p_(p),
        work_(work),
        shared_(shared),
        lane_(thread_x() % kWave),
        wave_(thread_x() / kWave),
        within_(lane_ % kLanes),
        slot_(static_cast<int>(lane_) / kLanes) {
    load_queries();
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
#pragma unroll
      for (int i = 0; i < Tile::kElements; ++i) out_[h][i] = 0;
    }
#pragma unroll
    for (int i = 0; i < Tile::kScores; ++i) {
      top_[i] = -infinity();
      sum_[i] = 0;
    }
  }

  RB_DEVICE void run() {
    const i64 stride = static_cast<i64>(kWaves) * Tile::kKeys;
    for (i64 key = work_.keys.first + wave_ * Tile::kKeys; key < work_.keys.end; key += stride) {
      Pack<KV> rows[Tile::kSteps][kPacks];
      Pack<KV> values[Tile::kSteps][kPacks];
      load_rows(p_.k, p_.k_at, p_.head_dim, key, rows);
      load_rows(p_.v, p_.v_at, p_.v_dim, key, values);
      float parts[Tile::kParts];
      multiply(rows, parts);
      sum_parts<kWave, kLanes / 2, Tile::kParts>(parts, lane_);
      weigh(key, parts);
      wave_barrier();
      add(values);
      wave_barrier();
    }
    finish();
  }

 private:
  RB_DEVICE void load_queries() {
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      const int head = work_.first_head + (h < work_.heads ? h : 0);
      const i64 from = query_offset(p_.q_at, work_.span, head, work_.query);
#pragma unroll
      for (int i = 0; i < Tile::kElements; ++i) {
        const int at = element(i);
        q_[h][i] =
            at < p_.head_dim ? load_number<float>(p_.q, p_.q_type, from + at * p_.q_at.step) : 0.0f;
      }
    }
  }

  // The index within a head of this lane's element `i`: lanes' packs alternate.
  RB_DEVICE int element(int i) const {
    return ((i / Tile::kCount) * kLanes + static_cast<int>(within_)) * Tile::kCount +
           i % Tile::kCount;
  }

  // Rows past the last key are read at the last key; their weights are 0.
  RB_DEVICE void load_rows(const void* base, const AttentionStrides& at, int dim, i64 key,
                           Pack<KV> (&rows)[Tile::kSteps][kPacks]) const {
#pragma unroll
    for (int step = 0; step < Tile::kSteps; ++step) {
      i64 row = key + step * Tile::kSlots + slot_;
      row = row < work_.keys.end ? row : work_.keys.end - 1;
      const KV* from =
          static_cast<const KV*>(base) + key_offset(p_, at, work_.span, work_.kv_head, row);
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        const int first = element(i * Tile::kCount);
        rows[step][i] = first < dim ? load128(from + first) : Pack<KV>{};
      }
    }
  }

  RB_DEVICE void multiply(const Pack<KV> (&rows)[Tile::kSteps][kPacks],
                          float (&parts)[Tile::kParts]) const {
#pragma unroll
    for (int step = 0; step < Tile::kSteps; ++step) {
#pragma unroll
      for (int h = 0; h < kHeads; ++h) parts[step * kHeads + h] = 0;
#pragma unroll
      for (int i = 0; i < Tile::kElements; ++i) {
        const float k = load_value(rows[step][i / Tile::kCount].values[i % Tile::kCount]);
#pragma unroll
        for (int h = 0; h < kHeads; ++h) parts[step * kHeads + h] += q_[h][i] * k;
      }
    }
  }

  template <class Combine>
  RB_DEVICE static float over_head(float x, Combine combine) {
    constexpr int kSame = Tile::kParts < kLanes ? kLanes / Tile::kParts : 1;
    return reduce_head<kWave, kSame, kLanes / Tile::kSteps>(x, combine);
  }

  // Turns the scores that this lane owns into weights for the wave, relative to the new top.
  RB_DEVICE void weigh(i64 first, const float (&parts)[Tile::kParts]) {
#pragma unroll
    for (int i = 0; i < Tile::kScores; ++i) {
      const int part = part_of<kLanes / 2, Tile::kParts>(lane_, i);
      const int row = part / kHeads * Tile::kSlots + slot_;
      const int h = part % kHeads;
      float score = -infinity();
      if (first + row < work_.keys.end && h < work_.heads) {
        score = kLog2E * attention_score<float>(p_, work_.span, work_.first_head + h, work_.query,
                                                first + row, parts[i]);
      }
      scores_[i] = score;
    }
    share_tops();
#pragma unroll
    for (int i = 0; i < Tile::kScores; ++i) {
      const int part = part_of<kLanes / 2, Tile::kParts>(lane_, i);
      const int h = part % kHeads;
      const bool any = new_top_[i] > -infinity();
      const float weight = any ? fast_exp2(scores_[i] - new_top_[i]) : 0.0f;
      const float keep = any ? fast_exp2(top_[i] - new_top_[i]) : 1.0f;
      sum_[i] = sum_[i] * keep + weight;
      top_[i] = new_top_[i];
      shared_.weights[wave_][part / kHeads * Tile::kSlots + slot_][h] = weight;
      shared_.keep[wave_][h] = keep;
    }
  }

  // new_top_[i]: the largest score so far of the head of this lane's score i. A lane's own scores
  // are of the same head unless a lane holds several heads.
  RB_DEVICE void share_tops() {
    constexpr int kOwnHeads = Tile::kScores < kHeads ? Tile::kScores : kHeads;
#pragma unroll
    for (int i = 0; i < kOwnHeads; ++i) {
      float top = top_[i];
#pragma unroll
      for (int j = i; j < Tile::kScores; j += kOwnHeads) top = Max{}(top, scores_[j]);
      top = over_head(top, Max{});
#pragma unroll
      for (int j = i; j < Tile::kScores; j += kOwnHeads) new_top_[j] = top;
    }
  }

  RB_DEVICE void add(const Pack<KV> (&values)[Tile::kSteps][kPacks]) {
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      const float keep = shared_.keep[wave_][h];
#pragma unroll
      for (int i = 0; i < Tile::kElements; ++i) out_[h][i] *= keep;
    }
#pragma unroll
    for (int step = 0; step < Tile::kSteps; ++step) {
      float weights[kHeads];
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
        weights[h] = shared_.weights[wave_][step * Tile::kSlots + slot_][h];
      }
#pragma unroll
      for (int i = 0; i < Tile::kElements; ++i) {
        const float v = load_value(values[step][i / Tile::kCount].values[i % Tile::kCount]);
#pragma unroll
        for (int h = 0; h < kHeads; ++h) out_[h][i] += weights[h] * v;
      }
    }
  }

  // Sums over the lanes that worked for the same head and element, then over the waves.
  RB_DEVICE void finish() {
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
#pragma unroll
      for (int i = 0; i < Tile::kElements; ++i) {
        float x = out_[h][i];
#pragma unroll
        for (int mask = kWave / 2; mask >= kLanes; mask /= 2) x += shuffle_xor<kWave>(x, mask);
        if (slot_ == 0) shared_.out[wave_][h][element(i)] = x;
      }
    }
    finish_sums();
    barrier();
    for (int i = static_cast<int>(thread_x()); i < work_.heads * p_.v_dim; i += kWaves * kWave) {
      write(i / p_.v_dim, i % p_.v_dim);
    }
  }

  RB_DEVICE void finish_sums() {
    constexpr int kOwnHeads = Tile::kScores < kHeads ? Tile::kScores : kHeads;
#pragma unroll
    for (int i = 0; i < kOwnHeads; ++i) {
      float sum = 0;
#pragma unroll
      for (int j = i; j < Tile::kScores; j += kOwnHeads) sum += sum_[j];
      sum = over_head(sum, Sum{});
      const int h = part_of<kLanes / 2, Tile::kParts>(lane_, i) % kHeads;
      shared_.sum[wave_][h] = sum;
      shared_.top[wave_][h] = top_[i];
    }
  }

  RB_DEVICE void write(int h, int column) const {
    float top = shared_.top[0][h];
    for (int w = 1; w < kWaves; ++w) top = Max{}(top, shared_.top[w][h]);
    float sum = 0;
    float out = 0;
    for (int w = 0; w < kWaves && top > -infinity(); ++w) {
      const float scale = fast_exp2(shared_.top[w][h] - top);
      sum += shared_.sum[w][h] * scale;
      out += shared_.out[w][h][column] * scale;
    }
    const int head = work_.first_head + h;
    if (p_.splits == 1) {
      const i64 to = query_offset(p_.y_at, work_.span, head, work_.query) + column * p_.y_at.step;
      store_number<float>(p_.y, p_.q_type, to, sum > 0 ? out / sum : 0.0f);
      return;
    }
    const i64 at = (static_cast<i64>(block_x()) * p_.heads + head) * p_.splits + block_z();
    p_.partial[at * p_.v_dim + column] = out;
    if (column == 0) {
      p_.partial_stats[2 * at] = top;
      p_.partial_stats[2 * at + 1] = sum;
    }
  }

  const AttentionParams& p_;
  const DecodeWork& work_;
  typename Tile::Shared& shared_;
  u32 lane_, wave_, within_;
  int slot_;
  float q_[kHeads][Tile::kElements];
  float out_[kHeads][Tile::kElements];
  float scores_[Tile::kScores], top_[Tile::kScores], new_top_[Tile::kScores], sum_[Tile::kScores];
};

template <class KV, int kWave, int kLanes, int kPacks, int kHeads>
RB_DEVICE void attention_decode(const AttentionParams& p) {
  using Tile = DecodeTile<KV, kWave, kLanes, kPacks, kHeads>;
  RB_SHARED typename Tile::Shared shared;
  const DecodeWork work = decode_work<kHeads>(p, kWaves * Tile::kKeys);
  Decoder<KV, kWave, kLanes, kPacks, kHeads> decoder(p, work, shared);
  decoder.run();
}

// Puts the splits of one query and head together.
RB_DEVICE void attention_combine(const AttentionParams& p) {
  const i64 at = static_cast<i64>(block_x()) * p.heads + block_y();
  const float* stats = p.partial_stats + 2 * at * p.splits;
  const float* partial = p.partial + at * p.splits * p.v_dim;
  float top = -infinity();
  for (int s = 0; s < p.splits; ++s) top = Max{}(top, stats[2 * s]);
  AttentionSpan span = dense_span(p, 0);
  i64 query = block_x();
  if (p.block_table == nullptr) {
    span.index = query / p.q_len;
    query %= p.q_len;
  }
  const i64 to = query_offset(p.y_at, span, block_y(), query);
  for (int column = static_cast<int>(thread_x()); column < p.v_dim;
       column += static_cast<int>(threads_per_block())) {
    float sum = 0;
    float out = 0;
    for (int s = 0; s < p.splits && top > -infinity(); ++s) {
      const float scale = fast_exp2(stats[2 * s] - top);
      sum += stats[2 * s + 1] * scale;
      out += partial[static_cast<i64>(s) * p.v_dim + column] * scale;
    }
    store_number<float>(p.y, p.q_type, to + column * p.y_at.step, sum > 0 ? out / sum : 0.0f);
  }
}
RB_KERNEL(attention_combine_f32, 256, AttentionParams, attention_combine(p))

// attention_decode_<cache>_d<largest head>_h<heads that share keys>
#define RB_HEADS(lanes, wave, dtype, T, dim, heads, kLanes, kPacks)                                \
  RB_KERNEL(attention_decode_##dtype##_d##dim##_h##heads##_##wave, kWaves* lanes, AttentionParams, \
            (attention_decode<T, lanes, kLanes, kPacks, heads>(p)))
#define RB_HALVES(dtype, T, heads)                \
  RB_WAVES(RB_HEADS, dtype, T, 64, heads, 8, 1)   \
  RB_WAVES(RB_HEADS, dtype, T, 128, heads, 16, 1) \
  RB_WAVES(RB_HEADS, dtype, T, 256, heads, 32, 1)
RB_HALVES(f16, f16, 1)
RB_HALVES(f16, f16, 4)
RB_HALVES(f16, f16, 8)
RB_HALVES(bf16, bf16, 1)
RB_HALVES(bf16, bf16, 4)
RB_HALVES(bf16, bf16, 8)
RB_WAVES(RB_HEADS, f32, float, 64, 1, 16, 1)
RB_WAVES(RB_HEADS, f32, float, 64, 4, 16, 1)
RB_WAVES(RB_HEADS, f32, float, 128, 1, 32, 1)
RB_WAVES(RB_HEADS, f32, float, 128, 4, 32, 1)
RB_WAVES(RB_HEADS, f32, float, 256, 1, 32, 2)
RB_WAVES(RB_HEADS, f32, float, 256, 4, 32, 2)

}  // namespace gpu
}  // namespace rbee
