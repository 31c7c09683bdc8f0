#pragma once
// The loop of a decoding wave: it reads keys and values of one key head and applies them to the
// queries that share it. It loads the next keys while scores become weights, and the next values
// during the next products; it reads entries of the block table one step earlier.

#include "backends/gpu/instructions.h"
#include "backends/gpu/kernels/attention_cache.h"

namespace rbee {
namespace gpu {

constexpr int kWaves = 4;  // of a block; they share out its keys

// kLanes neighbouring lanes read a key of kLanes * kPacks runs; a step of a wave is kSlots keys,
// kSteps steps are a tile.
template <class KV, int kWaveLanes, int kKeyLanes, int kKeyPacks, int kQueryHeads>
struct DecodeTile {
  using Cached = KV;
  static constexpr int kWave = kWaveLanes;
  static constexpr int kLanes = kKeyLanes;
  static constexpr int kPacks = kKeyPacks;
  static constexpr int kHeads = kQueryHeads;
  static constexpr int kCount = kRun<KV>;
  static constexpr int kElements = kPacks * kCount;  // of a head, held by a lane
  static constexpr int kDim = kLanes * kElements;
  static constexpr int kSlots = kWave / kLanes;
  static constexpr int kSteps = kHeads == 1 && kPacks == 1 ? 8 : 4;
  static constexpr int kKeys = kSlots * kSteps;
  static_assert(kKeys <= kWave, "a lane finds one key's place");
  // Scores of a lane before and after they are summed over the kLanes lanes.
  static constexpr int kParts = kSteps * kHeads;
  static constexpr int kScores = kParts > kLanes ? kParts / kLanes : 1;
  static constexpr int kOwnHeads = kScores < kHeads ? kScores : kHeads;

  static constexpr bool kPages = SameType<KV, PageCode>::value;
  static_assert(!kPages || kPacks == 1, "a lane's elements of a key share a scale");

  using Run = RunOf<KV>;
  using Rows = Run[kSteps][kPacks];

  // The waves' results.
  struct Ends {
    float top[kWaves][kHeads];
    float sum[kWaves][kHeads];
    float out[kWaves][kHeads][kDim];
  };
  struct alignas(16) Shared {
    float weights[kWaves][kKeys][kHeads];
    float keep[kWaves][kHeads];
    float q[kHeads][kDim];
    Ends ends;
  };
};

// Sums kCount of `parts` over the lanes that differ in the bits of kMask and below. While there are
// several, it halves them: a lane keeps one half and gives the other to its partner. part_of lists
// the parts that a lane ends with.
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
      // By value, since a choice between elements would be an index, which registers do not have.
      const float low = parts[i];
      const float high = parts[i + kHalf];
      parts[i] = (upper ? high : low) + shuffle_xor<kWave>(upper ? low : high, kMask);
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

// Every lane gets combine() over the lanes that have parts of the same head. Lane bits from kSame
// on are the part (the ones below repeat it); of these, bits [kSame, kStep) are the head.
template <int kWave, int kSame, int kStep, int kMask = kWave / 2, class Combine>
RB_DEVICE float reduce_head(float x, Combine combine) {
  if constexpr (kMask < kSame || kMask == 0) {
    return x;
  } else {
    if constexpr (kMask >= kStep) x = combine(x, shuffle_xor<kWave>(x, kMask));
    return reduce_head<kWave, kSame, kStep, kMask / 2>(x, combine);
  }
}

// Keeps clang from moving the products to the use of the sums, after the next loads: then these
// would need registers in addition to the factors'.
template <int kCount>
RB_DEVICE void sums_before(float (&sums)[kCount]) {
  u32 words[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) words[i] = bits_of_float(sums[i]);
  load_anyway(words);
#pragma unroll
  for (int i = 0; i < kCount; ++i) sums[i] = float_of_bits(words[i]);
}

// A block's query, heads and keys.
struct DecodeWork {
  i64 index;  // of the query's heads that share a key head, among all
  AttentionSpan span;
  i64 query;
  i32 kv_head, first_head, heads;
  KeyRange keys;
};

// The addresses of keys and values. A wave finds kKeys at once, one for each lane.
template <class KV, int kKeys>
class CachePlaces {
 public:
  // A key's block of the cache and its row there; dense: the key.
  struct Place {
    i32 block;
    u32 row;
  };

  RB_DEVICE CachePlaces(const AttentionParams& p, const DecodeWork& work, u32 lane)
      : p_(p), work_(work), within_(lane % kKeys) {}

  // For key `first` + lane. Keys past the last have the last key's address and weight 0.
  RB_DEVICE Place find(i64 first) const {
    const i64 last = work_.keys.end - 1;
    const i64 key = first + within_;
    const u32 at = static_cast<u32>(key < last ? key : last);
    if (p_.block_table == nullptr) return {0, at};
    const u32 block = divide(at, p_.block_size);
    return {p_.block_table[work_.span.index * p_.table_row + block * p_.table_step],
            at - block * p_.block_size.divisor};
  }

  // Offset of a place's key or value, in runs: rows are whole runs, and caches less than 2^32. For
  // a q8_0 cache in rows of pages.
  RB_DEVICE u32 keys(const Place& place) const { return runs_before(p_.k_at, place); }
  RB_DEVICE u32 values(const Place& place) const { return runs_before(p_.v_at, place); }

 private:
  RB_DEVICE u32 runs_before(const AttentionStrides& at, const Place& place) const {
    if constexpr (SameType<KV, PageCode>::value) {
      const u32 page = static_cast<u32>(place.block * p_.kv_heads + work_.kv_head);
      return page * p_.block_size.divisor + place.row;
    }
    const i64 block = p_.block_table == nullptr ? work_.span.index : place.block;
    const i64 elements = block * at.batch + work_.kv_head * at.head + place.row * at.time;
    return static_cast<u32>(static_cast<u64>(elements) / kRun<KV>);
  }

  const AttentionParams& p_;
  const DecodeWork& work_;
  u32 within_;
};

// Row block_x() of q and the heads of block_y(). `share`: the keys of a split, equal shares of the
// query's visible keys in whole tiles of all waves, and at least p.least_share.
template <int kHeads>
RB_DEVICE DecodeWork decode_work(const AttentionParams& p, int tile, i64& share) {
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
  work.index = row * p.kv_heads * parts + block_y();
  work.kv_head = static_cast<i32>(block_y()) / parts;
  const int begin = static_cast<i32>(block_y()) % parts * kHeads;
  work.first_head = work.kv_head * group + begin;
  work.heads = group - begin < kHeads ? group - begin : kHeads;
  work.keys = seen_keys(p, work.span, work.query);
  // Keys of one sequence are fewer than 2^31.
  u32 each = static_cast<u32>(work.keys.end - work.keys.first + p.splits - 1) / p.splits;
  if (each < static_cast<u32>(p.least_share)) each = static_cast<u32>(p.least_share);
  share = static_cast<i64>((each + tile - 1) / tile) * tile;
  return work;
}

struct AnyHeadResult;  // attention_merge.h

template <class OfTile>
class LaneDecoder {
 public:
  using Tile = OfTile;
  using Result = AnyHeadResult;
  using KV = typename Tile::Cached;
  using Rows = typename Tile::Rows;
  using Places = CachePlaces<KV, Tile::kKeys>;

  RB_DEVICE LaneDecoder(const AttentionParams& p, const DecodeWork& work,
                        typename Tile::Shared& shared)
      : p_(p),
        work_(work),
        shared_(shared),
        lane_(thread_x() % Tile::kWave),
        wave_(thread_x() / Tile::kWave),
        within_(lane_ % Tile::kLanes),
        places_(p, work, lane_),
        slot_(static_cast<int>(lane_) / Tile::kLanes) {
#pragma unroll
    for (int h = 0; h < Tile::kHeads; ++h) {
#pragma unroll
      for (int i = 0; i < Tile::kElements; ++i) out_[h][i] = 0;
    }
#pragma unroll
    for (int i = 0; i < Tile::kScores; ++i) {
      top_[i] = -infinity();
      sum_[i] = 0;
    }
  }

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
  static constexpr int kChunk = 4;  // neighbours within a run

  // Queries that a thread copies to shared memory.
  static constexpr int kThreads = kWaves * Tile::kWave;
  static constexpr int kFresh = (Tile::kHeads * Tile::kDim + kThreads - 1) / kThreads;

  RB_DEVICE void pass_keys() {
    constexpr i64 kStride = static_cast<i64>(kWaves) * Tile::kKeys;
    i64 key = work_.keys.first + wave_ * Tile::kKeys;
    typename Places::Place place = places_.find(key);
    wait_for_previous_kernel();
    float fresh[kFresh];
    read_queries(fresh);
    Rows keys, values;
    load_rows(p_.k, places_.keys(place), p_.head_dim, keys);
    load_rows(p_.v, places_.values(place), p_.v_dim, values);
    loads_before();
    place = places_.find(key + kStride);
    share_queries(fresh);
    for (; key < work_.keys.end; key += kStride) {
      const bool more = key + kStride < work_.keys.end;
      float parts[Tile::kParts];
      multiply(keys, parts);
      sums_before(parts);
      if (more) load_rows(p_.k, places_.keys(place), p_.head_dim, keys);
      loads_before();
      sum_parts<Tile::kWave, Tile::kLanes / 2, Tile::kParts>(parts, lane_);
      weigh(key, parts);
      wave_barrier();
      add(values);
      wave_barrier();
      if (more) load_rows(p_.v, places_.values(place), p_.v_dim, values);
      loads_before();
      place = places_.find(key + 2 * kStride);
    }
  }

  RB_DEVICE void read_queries(float (&fresh)[kFresh]) const {
#pragma unroll
    for (int i = 0; i < kFresh; ++i) {
      const int at = static_cast<int>(thread_x()) + i * kThreads;
      const int h = at / Tile::kDim;
      const int d = at % Tile::kDim;
      const bool inside = h < work_.heads && d < p_.head_dim;
      const i64 from = query_offset(p_.q_at, work_.span, work_.first_head + h, work_.query);
      fresh[i] = inside ? load_number<float>(p_.q, p_.q_type, from + d * p_.q_at.step) : 0.0f;
    }
  }
  RB_DEVICE void share_queries(const float (&fresh)[kFresh]) const {
#pragma unroll
    for (int i = 0; i < kFresh; ++i) {
      const int at = static_cast<int>(thread_x()) + i * kThreads;
      if (at < Tile::kHeads * Tile::kDim) shared_.q[at / Tile::kDim][at % Tile::kDim] = fresh[i];
    }
    barrier();
  }

  // The index within a head of this lane's element `i`: lanes' runs alternate.
  RB_DEVICE int element(int i) const {
    return ((i / Tile::kCount) * Tile::kLanes + static_cast<int>(within_)) * Tile::kCount +
           i % Tile::kCount;
  }

  // This lane's element `i` of a row. Rows stay words: apart, halves would take a register
  // each.
  RB_DEVICE static float number(const typename Tile::Run (&row)[Tile::kPacks], int i) {
    return load_value(gpu::element<KV>(row[i / Tile::kCount].words, i % Tile::kCount));
  }

  // `before`: runs_before of this lane's key; the lanes of a slot read its row. Lanes past
  // the end of a head repeat its last run: queries are 0 there, and results are not written.
  RB_DEVICE void load_rows(const void* base, u32 before, int dim, Rows& rows) const {
    const u32 last = static_cast<u32>(dim) / Tile::kCount - 1;
#pragma unroll
    for (int step = 0; step < Tile::kSteps; ++step) {
      const u32 row = shuffle<Tile::kWave>(before, step * Tile::kSlots + slot_);
#pragma unroll
      for (int i = 0; i < Tile::kPacks; ++i) {
        const u32 first = static_cast<u32>(i * Tile::kLanes) + within_;
        rows[step][i] = run_of(base, row, first < last ? first : last);
      }
    }
  }
  RB_DEVICE typename Tile::Run run_of(const void* base, u32 row, u32 run) const {
    if constexpr (Tile::kPages) {
      const u32 page = divide(row, p_.block_size);
      const PageRow from = page_row(p_, base, page, row - page * p_.block_size.divisor);
      return load_page_run(from, run * Tile::kCount);
    } else {
      return static_cast<const typename Tile::Run*>(base)[static_cast<u64>(row) + run];
    }
  }

  // Reads queries from shared memory, a chunk at a time: registers hold the loads under way.
  RB_DEVICE void multiply(const Rows& rows, float (&parts)[Tile::kParts]) const {
#pragma unroll
    for (int i = 0; i < Tile::kParts; ++i) parts[i] = 0;
#pragma unroll
    for (int first = 0; first < Tile::kElements; first += kChunk) {
      float q[Tile::kHeads][kChunk];
#pragma unroll
      for (int h = 0; h < Tile::kHeads; ++h) {
#pragma unroll
        for (int i = 0; i < kChunk; ++i) q[h][i] = shared_.q[h][element(first) + i];
      }
#pragma unroll
      for (int step = 0; step < Tile::kSteps; ++step) {
#pragma unroll
        for (int i = 0; i < kChunk; ++i) {
          const float k = number(rows[step], first + i);
#pragma unroll
          for (int h = 0; h < Tile::kHeads; ++h) parts[step * Tile::kHeads + h] += q[h][i] * k;
        }
      }
    }
    if constexpr (Tile::kPages) {
#pragma unroll
      for (int i = 0; i < Tile::kParts; ++i) {
        parts[i] *= to_float(rows[i / Tile::kHeads][0].scale);
      }
    }
  }

  template <class Combine>
  RB_DEVICE static float over_head(float x, Combine combine) {
    constexpr int kSame = Tile::kParts < Tile::kLanes ? Tile::kLanes / Tile::kParts : 1;
    return reduce_head<Tile::kWave, kSame, Tile::kLanes / Tile::kSteps>(x, combine);
  }

  RB_DEVICE int part(int score) const {
    return part_of<Tile::kLanes / 2, Tile::kParts>(lane_, score);
  }

  // Turns the scores that this lane owns into weights for the wave, relative to the new top.
  RB_DEVICE void weigh(i64 first, const float (&parts)[Tile::kParts]) {
    float scores[Tile::kScores], new_top[Tile::kScores];
#pragma unroll
    for (int i = 0; i < Tile::kScores; ++i) {
      const int row = part(i) / Tile::kHeads * Tile::kSlots + slot_;
      const int h = stays_in_loop(part(i) % Tile::kHeads);
      scores[i] = -infinity();
      if (first + row < work_.keys.end && h < work_.heads) {
        scores[i] = kLog2E * attention_score<float>(p_, work_.span, work_.first_head + h,
                                                    work_.query, first + row, parts[i]);
      }
    }
    share_tops(scores, new_top);
#pragma unroll
    for (int i = 0; i < Tile::kScores; ++i) {
      const int h = part(i) % Tile::kHeads;
      // Heads without a number so far: weights are 2^-inf = 0, or NaN.
      const float base = new_top[i] > -infinity() ? new_top[i] : 0.0f;
      const float weight = fast_exp2(scores[i] - base);
      const float keep = fast_exp2(top_[i] - base);
      sum_[i] = sum_[i] * keep + weight;
      top_[i] = new_top[i];
      shared_.weights[wave_][part(i) / Tile::kHeads * Tile::kSlots + slot_][h] = weight;
      shared_.keep[wave_][h] = keep;
    }
  }

  // new_top[i]: the largest score so far of the head of this lane's score i. A lane's own scores
  // are of the same head unless a lane holds several heads.
  RB_DEVICE void share_tops(const float (&scores)[Tile::kScores],
                            float (&new_top)[Tile::kScores]) const {
#pragma unroll
    for (int i = 0; i < Tile::kOwnHeads; ++i) {
      float top = top_[i];
#pragma unroll
      for (int j = i; j < Tile::kScores; j += Tile::kOwnHeads) top = MaxNumber{}(top, scores[j]);
      top = over_head(top, MaxNumber{});
#pragma unroll
      for (int j = i; j < Tile::kScores; j += Tile::kOwnHeads) new_top[j] = top;
    }
  }

  RB_DEVICE void add(const Rows& values) {
#pragma unroll
    for (int h = 0; h < Tile::kHeads; ++h) {
      const float keep = shared_.keep[wave_][h];
#pragma unroll
      for (int i = 0; i < Tile::kElements; ++i) out_[h][i] *= keep;
    }
#pragma unroll
    for (int step = 0; step < Tile::kSteps; ++step) {
      float weights[Tile::kHeads];
#pragma unroll
      for (int h = 0; h < Tile::kHeads; ++h) {
        weights[h] = shared_.weights[wave_][step * Tile::kSlots + slot_][h];
        if constexpr (Tile::kPages) weights[h] *= to_float(values[step][0].scale);
      }
#pragma unroll
      for (int i = 0; i < Tile::kElements; ++i) {
        const float v = number(values[step], i);
#pragma unroll
        for (int h = 0; h < Tile::kHeads; ++h) out_[h][i] += weights[h] * v;
      }
    }
  }

  // Sums over the lanes that worked for the same head and element, and ends the wave's part.
  RB_DEVICE void finish() {
#pragma unroll
    for (int h = 0; h < Tile::kHeads; ++h) {
#pragma unroll
      for (int i = 0; i < Tile::kElements; ++i) {
        float x = out_[h][i];
#pragma unroll
        for (int mask = Tile::kWave / 2; mask >= Tile::kLanes; mask /= 2) {
          x += shuffle_xor<Tile::kWave>(x, mask);
        }
        if (slot_ == 0) shared_.ends.out[wave_][h][element(i)] = x;
      }
    }
#pragma unroll
    for (int i = 0; i < Tile::kOwnHeads; ++i) {
      float sum = 0;
#pragma unroll
      for (int j = i; j < Tile::kScores; j += Tile::kOwnHeads) sum += sum_[j];
      sum = over_head(sum, Sum{});
      const int h = part(i) % Tile::kHeads;
      shared_.ends.sum[wave_][h] = sum;
      shared_.ends.top[wave_][h] = top_[i];
    }
    barrier();
  }

  const AttentionParams& p_;
  const DecodeWork& work_;
  typename Tile::Shared& shared_;
  u32 lane_, wave_, within_;
  Places places_;
  int slot_;
  float out_[Tile::kHeads][Tile::kElements];
  float top_[Tile::kScores], sum_[Tile::kScores];
};

}  // namespace gpu
}  // namespace rbee
