#pragma once
// Attention of many queries on AMD's matrix units (matrix_units.h), dense and paged:
// FlashAttention-2 (Dao 2023) with transposed products. A wave computes scores as keys times
// queries, so a lane holds scores of a single query. Its weights, rounded, are the right operand
// of values times weights, without a detour through shared memory. Values are transposed there,
// with their keys in the order of the lanes' scores.
//
// Both operands in shared memory are read 16 bytes at a time and swizzled, not padded: on
// CDNA two blocks with heads of 128 share the 64 KiB of a compute unit, so that one multiplies
// while the other computes weights. A wave finds the places of rows a tile before it reads them,
// and reads rows without branches a tile before their use: all reads of a tile run at once.

#include "backends/gpu/kernels/attention_cache.h"
#include "backends/gpu/kernels/attention_softmax.h"
#include "backends/rocm/kernels/attention_operands.h"

#if RB_MATRIX_UNIT

namespace rbee {
namespace gpu {

// Waves with the same queries exchange scores here.
template <int kBytes>
struct JoinedScores {
  alignas(16) u8 joined[kBytes];
};
template <>
struct JoinedScores<0> {};

template <int kDim>
struct AmdTile {
  // Waves with the same queries: each has a part of the head, since the registers of one cannot
  // hold all of it.
  static constexpr int kSharing = kWave == 32 && kDim > 128 ? 2 : 1;
  static constexpr int kHeld = kDim / kSharing;  // elements of the head that a wave has
  static constexpr int kThreads = 256 * kSharing;
  static constexpr int kWaves = kThreads / kWave;
  static constexpr int kBands = kWave == 64 && kDim <= 128 ? 2 : 1;  // of 16 queries
  static constexpr int kRows = kWaves / kSharing * kBands * 16;
  static constexpr int kKeys = kDim <= (kWave == 64 ? 128 : 64) ? 64 : 32;
  static constexpr int kParts = kDim / 8;                     // of 16 bytes, in a row
  static constexpr int kKeyChunks = kKeys / 8;                // the same of the transposed values
  static constexpr int kFetched = kKeys * kParts / kThreads;  // rows that a thread has a part of
  static constexpr int kWaveRows = kKeys / kWaves;
  static_assert(kFetched % 2 == 0 && kWave % kParts == 0, "threads share a tile evenly");
  static_assert(2 * kWaveRows <= kWave, "a lane finds a row of keys or of values");
  static constexpr int kJoinedBytes = kKeys * 16 * static_cast<int>(sizeof(float));  // of a wave
  struct Shared : JoinedScores<kSharing == 1 ? 0 : kWaves * kJoinedBytes> {
    alignas(16) u8 k[kKeys * kDim * 2];
    alignas(16) u8 v[kDim * kKeys * 2];  // transposed
  };
};

// Eight elements of a key or value as fetched; 8-bit ones become T on the way to shared
// memory.
template <class T, class KV>
struct PartOf {
  using type = RunOf<KV>;
};
template <class T>
struct PartOf<T, T> {
  using type = Chunk;
};

// The start of a row of a cache or tensor, in bytes from its own start. Offsets, since compilers do
// not see that pointers that passed through other lanes lead to device memory.
template <class KV>
struct RowPlace {
  i64 row;
};
template <>
struct RowPlace<PageCode> {
  i64 codes, scales;
};

RB_DEVICE i64 shuffle_offset(i64 x, u32 lane) {
  const u64 low = shuffle<kWave>(static_cast<u32>(x), static_cast<int>(lane));
  const u64 high = shuffle<kWave>(static_cast<u32>(x >> 32), static_cast<int>(lane));
  return static_cast<i64>(low | high << 32);
}

// T: the type of the products. KV: T too, or the 8-bit type of the keys and values. kShaped: scores
// are more than scaled products. A variant of its own, since it needs registers.
template <class T, class KV, int kDim, bool kShaped>
class AmdAttention {
 public:
  static constexpr bool kNarrow = !SameType<T, KV>::value;
  using Part = typename PartOf<T, KV>::type;
  using Place = RowPlace<KV>;
  using Tile = AmdTile<kDim>;
  using Shared = typename Tile::Shared;
  // Weights are 2^kLift times too large, which division by their sum undoes: f16 ones would be
  // subnormal from 2^-15 on, and gfx90a's matrix units read those as zeros.
  static constexpr float kLift = __is_same(T, f16) ? 14 : 0;

  RB_DEVICE AmdAttention(const AttentionParams& p, const TileWork& work, Shared& shared)
      : p_(p),
        work_(work),
        factor_(kShaped ? 1.0f : p.scale * kLog2E),
        shared_(shared),
        lane_(static_cast<int>(thread_x()) % kWave),
        wave_(static_cast<int>(thread_x()) / kWave) {}

  RB_DEVICE void run() {
    start_bands();
    const TileKeys keys = tile_keys(p_, work_);
    if (keys.first < keys.end) {
      last_ = keys.end - 1;
      look_up(keys.first);
      fetch(locate(keys.first));
      look_up(keys.first + Tile::kKeys);
    }
    for (i64 key = keys.first; key < keys.end; key += Tile::kKeys) {
      barrier();  // all waves have used the tile before
      put();
      const Place next = locate(key + Tile::kKeys);
      barrier();
      fetch(next);
      look_up(key + 2 * Tile::kKeys);
      loads_before();
      const bool partly = key < keys.all_first || key + Tile::kKeys > keys.all_end;
      add_tile(key, partly);
    }
    write();
  }

 private:
  struct Band {
    Fragment q[Tile::kHeld / 32];
    Results out[Tile::kHeld / 16];  // rows are elements of the head
    float top, sum;                 // of this lane's query; the sum of this lane's keys
  };

  // The lane, hidden from clang's knowledge that it never changes: values computed from it before
  // the loop would take registers. Unsigned, so that divisions are shifts.
  RB_DEVICE u32 own_lane() const { return opaque(static_cast<u32>(lane_)); }
  RB_DEVICE static u32 opaque(u32 x) {
    return static_cast<u32>(stays_in_loop(static_cast<int>(x)));
  }

  RB_DEVICE int row_of(int band) const {
    return (wave_ / Tile::kSharing * Tile::kBands + band) * 16 + lane_ % 16;
  }
  // The first element of the wave's part of the head.
  RB_DEVICE int first_held() const { return wave_ % Tile::kSharing * Tile::kHeld; }

  RB_DEVICE void start_bands() {
#pragma unroll
    for (int band = 0; band < Tile::kBands; ++band) {
#pragma unroll
      for (int part = 0; part < Tile::kHeld / 32; ++part) {
        Chunks words;
#pragma unroll
        for (int c = 0; c < kChunks; ++c) {
          words.chunks[c] =
              load_query(row_of(band), first_held() + chunk_of_lane(part, c, lane_) * 8);
        }
        bands_[band].q[part] = __builtin_bit_cast(Fragment, words);
      }
#pragma unroll
      for (int i = 0; i < Tile::kHeld / 16; ++i) bands_[band].out[i] = Results(0);
      bands_[band].top = -infinity();
      bands_[band].sum = 0;
    }
  }

  // Elements [at, at + 8) of a query; f32 ones are rounded to the keys' type; zeros outside.
  RB_DEVICE Chunk load_query(int row, int at) const {
    if (row >= work_.count || at >= p_.head_dim) return Chunk(0);
    const i64 from = query_offset(p_.q_at, work_.span, work_.head, work_.first + row) + at;
    Chunk out;
    if (p_.q_type != AttentionType::f32) {
      out = *reinterpret_cast<const Chunk*>(static_cast<const T*>(p_.q) + from);
#pragma unroll
      for (int i = 0; i < 4; ++i) out[i] = as_multiplied(out[i]);
    } else {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const Pack<float> in = load128(static_cast<const float*>(p_.q) + from + i * 4);
        out[2 * i] = round_pair<T>(in.values[0], in.values[1]);
        out[2 * i + 1] = round_pair<T>(in.values[2], in.values[3]);
      }
    }
    return out;
  }

  // Two neighbours of q, of a 16-bit type, as T. With 8-bit keys their type may differ from T.
  RB_DEVICE u32 as_multiplied(u32 two) const {
    if (!kNarrow || p_.q_type != AttentionType::bf16) return two;
    return round_pair<T>(float_of_bf16(static_cast<u16>(two)), float_of_bits(two & 0xffff0000u));
  }

  // Each wave fetches kWaveRows rows of keys and of values, of neighbouring places in the tile. A
  // lane finds one of them: of keys, or, in the upper lanes, of values. Past the end the last key
  // replaces missing ones, and its scores are hidden.
  RB_DEVICE u32 own_key(i64 first) const {
    const u32 lane = own_lane();
    const i64 key =
        first + key_at(static_cast<u32>(wave_) * Tile::kWaveRows + lane % Tile::kWaveRows);
    return static_cast<u32>(key < last_ ? key : last_);  // fewer than 2^31: see key_offset()
  }

  // Asks for the block of the lane's row.
  RB_DEVICE void look_up(i64 first) {
    if (p_.block_table == nullptr) return;
    const u32 block = divide(own_key(first), p_.block_size);
    block_ = p_.block_table[work_.span.index * p_.table_row + block * p_.table_step];
  }

  // The lane's row, after its block was looked up.
  RB_DEVICE Place locate(i64 first) const {
    i64 block = work_.span.index;
    u32 within = own_key(first);
    if (p_.block_table != nullptr) {
      block = block_;
      within -= divide(within, p_.block_size) * p_.block_size.divisor;
    }
    if constexpr (SameType<KV, PageCode>::value) {
      const u8* keys = static_cast<const u8*>(p_.k);  // values have the layout of keys
      const PageRow row = page_row(p_, keys, block * p_.kv_heads + work_.kv_head, within);
      return {row.codes - keys, reinterpret_cast<const u8*>(row.scales) - keys};
    } else {
      const bool of_values = own_lane() / Tile::kWaveRows % 2 != 0;
      const AttentionStrides& k = p_.k_at;
      const AttentionStrides& v = p_.v_at;
      const i64 row = block * (of_values ? v.batch : k.batch) +
                      work_.kv_head * (of_values ? v.head : k.head) +
                      within * (of_values ? v.time : k.time);
      return {row * static_cast<int>(sizeof(KV))};
    }
  }

  // The thread's part of the row that a lane has found, or another part if the row has fewer.
  RB_DEVICE static Part load_part(const void* base, const Place& own, u32 lane, u32 part, i32 dim) {
    const u8* bytes = static_cast<const u8*>(base);
    const u32 first = part * 8 < static_cast<u32>(dim) ? part * 8 : 0;
    if constexpr (SameType<KV, PageCode>::value) {
      const u8* scales = bytes + shuffle_offset(own.scales, lane);
      const PageRow row{bytes + shuffle_offset(own.codes, lane),
                        reinterpret_cast<const f16*>(scales)};
      return load_page_run(row, first);
    } else {
      const u8* row = bytes + shuffle_offset(own.row, lane);
      return *reinterpret_cast<const Part*>(row + first * static_cast<u32>(sizeof(KV)));
    }
  }

  // Reads a tile into registers: parts of kFetched rows of neighbouring places.
  RB_DEVICE void fetch(const Place& own) {
    const u32 lane = own_lane();
    const u32 part = lane % Tile::kParts, first = lane / Tile::kParts * Tile::kFetched;
#pragma unroll
    for (int i = 0; i < Tile::kFetched; ++i) {
      k_[i] = load_part(p_.k, own, first + i, part, p_.head_dim);
    }
#pragma unroll
    for (int i = 0; i < Tile::kFetched; ++i) {
      v_[i] = load_part(p_.v, own, first + i + Tile::kWaveRows, part, p_.v_dim);
    }
  }

  RB_DEVICE static Chunk elements_of(const Part& part) {
    if constexpr (kNarrow) {
      return __builtin_bit_cast(Chunk, widen<T, KV>(part));
    } else {
      return part;
    }
  }

  // The place of a chunk of a key, and of an element of all values.
  RB_DEVICE static u32 key_chunk(u32 key, u32 chunk) {
    return key * (kDim * 2) + ((chunk ^ swizzle<Tile::kParts>(key)) << 4);
  }
  RB_DEVICE static u32 value_chunk(u32 element, u32 chunk) {
    const u32 by = swizzle<Tile::kKeyChunks>(element & 15) ^ (element >> 4) % Tile::kKeyChunks;
    return element * (Tile::kKeys * 2) + ((chunk ^ by) << 4);
  }

  RB_DEVICE void put() const {
    const u32 thread = opaque(thread_x());
    const u32 part = thread % Tile::kParts, place = thread / Tile::kParts * Tile::kFetched;
    // Elements beyond a key's end are zeros, as in the queries.
    const bool within = part * 8 < static_cast<u32>(p_.head_dim);
#pragma unroll
    for (int i = 0; i < Tile::kFetched; ++i) {
      const Chunk words = within ? elements_of(k_[i]) : Chunk(0);
      *reinterpret_cast<Chunk*>(shared_.k + key_chunk(key_at(place + i), part)) = words;
    }
    Chunk rows[Tile::kFetched];
#pragma unroll
    for (int i = 0; i < Tile::kFetched; ++i) rows[i] = elements_of(v_[i]);
    using Column = Vector<u32, Tile::kFetched / 2>;
#pragma unroll
    for (int d = 0; d < 8; ++d) {
      Column column;
#pragma unroll
      for (int i = 0; i < Tile::kFetched; i += 2) {
        constexpr u32 kLow = 0x5410, kHigh = 0x7632;
        const u32 first = rows[i][d / 2], second = rows[i + 1][d / 2];
        column[i / 2] =
            d % 2 == 0 ? pick_bytes<kLow>(first, second) : pick_bytes<kHigh>(first, second);
      }
      u8* to = shared_.v + value_chunk(part * 8 + d, place / 8) + place % 8 * 2;
      *reinterpret_cast<Column*>(to) = column;
    }
  }

  RB_DEVICE void add_tile(i64 key, bool partly) {
    Scores scores[Tile::kBands][Tile::kKeys / 16];
    multiply_keys(scores);
    if constexpr (Tile::kSharing > 1) join(scores[0]);
    Fragment weights[Tile::kBands][Tile::kKeys / 32];
#pragma unroll
    for (int band = 0; band < Tile::kBands; ++band) {
      weigh(band, key, partly, scores[band]);
#pragma unroll
      for (int i = 0; i < Tile::kKeys / 32; ++i) {
        const Scores two[2] = {scores[band][2 * i], scores[band][2 * i + 1]};
        weights[band][i] = right_operand<T>(two, lane_);
      }
    }
    multiply_values(weights);
  }

  // The first of a lane's chunks; the others differ in bits that are 0 in it (chunk_of_lane()).
  RB_DEVICE static u32 first_chunk(u32 lane) {
    return static_cast<u32>(chunk_of_lane(0, 0, static_cast<int>(lane % kWave)));
  }
  // A lane's share of 16 rows. lanes: the place of its first chunk in the first 16 rows; by: the
  // change of the chunks' numbers in these rows against the first ones.
  RB_DEVICE static Fragment load_left(const u8* rows, u32 lanes, u32 part, u32 by) {
    Chunks out;
#pragma unroll
    for (u32 c = 0; c < kChunks; ++c) {
      const u32 chunk = part * 4 + c * (4 / kChunks);
      out.chunks[c] = *reinterpret_cast<const Chunk*>(rows + (lanes ^ (chunk ^ by) << 4));
    }
    return __builtin_bit_cast(Fragment, out);
  }

  // use(step, load(step)) for all steps, kProducts instructions of the matrix unit each. It reads
  // the next step's operand before this one's products, if there are enough registers.
  template <int kSteps, int kProducts, class Load, class Use>
  RB_DEVICE static void each_step(Load load, Use use) {
    constexpr bool kAhead = kChunks < 4;
    constexpr int kReads = 0x100, kMatrix = 0x8;  // kinds of instructions
    loads_before();
    if constexpr (kAhead) {
      Fragment next = load(0);
      __builtin_amdgcn_sched_group_barrier(kReads, kChunks, 0);
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const Fragment here = next;
        if (step + 1 < kSteps) next = load(step + 1);
        use(step, here);
        __builtin_amdgcn_sched_group_barrier(kReads, kChunks, 0);
        __builtin_amdgcn_sched_group_barrier(kMatrix, kProducts, 0);
      }
    } else {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        use(step, load(step));
        loads_before();
      }
    }
    loads_before();
  }

  RB_DEVICE void multiply_keys(Scores (&scores)[Tile::kBands][Tile::kKeys / 16]) const {
    constexpr int kParts = Tile::kHeld / 32;
    const u32 lane = own_lane();
    const u32 lanes = key_chunk(lane % 16, first_chunk(lane) + static_cast<u32>(first_held()) / 8);
    Results sums[Tile::kBands][Tile::kKeys / 16] = {};
    each_step<Tile::kKeys / 16 * kParts, Tile::kBands * kInstructions<T>>(
        [&](int step) {
          const u8* rows = shared_.k + step / kParts * 16 * kDim * 2;
          return load_left(rows, lanes, static_cast<u32>(step % kParts), 0);
        },
        [&](int step, const Fragment& keys) {
#pragma unroll
          for (int band = 0; band < Tile::kBands; ++band) {
            multiply_add<T>(sums[band][step / kParts], keys, bands_[band].q[step % kParts]);
          }
        });
#pragma unroll
    for (int band = 0; band < Tile::kBands; ++band) {
#pragma unroll
      for (int i = 0; i < Tile::kKeys / 16; ++i) {
        scores[band][i] = __builtin_bit_cast(Scores, sums[band][i]);
      }
    }
  }

  // Adds the scores of the other wave with these queries, over the rest of the head.
  RB_DEVICE void join(Scores (&scores)[Tile::kKeys / 16]) {
    constexpr int kCount = Tile::kKeys / 16 * kSums / 4;
    const auto place = [&](int wave, int i) {
      u8* from = shared_.joined + wave * Tile::kJoinedBytes + (i * kWave + lane_) * 16;
      return reinterpret_cast<Pack<float>*>(from);
    };
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float* four = scores[i * 4 / kSums].values + i * 4 % kSums;
      *place(wave_, i) = {four[0], four[1], four[2], four[3]};
    }
    barrier();
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const Pack<float> other = *place(wave_ ^ 1, i);
      float* four = scores[i * 4 / kSums].values + i * 4 % kSums;
#pragma unroll
      for (int j = 0; j < 4; ++j) four[j] += other.values[j];
    }
  }

  RB_DEVICE void multiply_values(const Fragment (&weights)[Tile::kBands][Tile::kKeys / 32]) {
    constexpr int kParts = Tile::kKeys / 32;
    const u32 lane = own_lane();
    const u32 lanes = value_chunk(lane % 16, first_chunk(lane));
    const u8* values = shared_.v + first_held() * Tile::kKeys * 2;
    static_assert(Tile::kSharing == 1 || Tile::kHeld / 16 % Tile::kKeyChunks == 0,
                  "all waves' rows are swizzled alike");
    each_step<Tile::kHeld / 16 * kParts, Tile::kBands * kInstructions<T>>(
        [&](int step) {
          const u32 d = static_cast<u32>(step / kParts);
          return load_left(values + d * 16 * Tile::kKeys * 2, lanes,
                           static_cast<u32>(step % kParts), d % Tile::kKeyChunks);
        },
        [&](int step, const Fragment& left) {
#pragma unroll
          for (int band = 0; band < Tile::kBands; ++band) {
            multiply_add<T>(bands_[band].out[step / kParts], left, weights[band][step % kParts]);
          }
        });
  }

  // Every lane gets combine() over the lanes with the same query.
  template <class Combine>
  RB_DEVICE static float over_query(float x, Combine combine) {
#pragma unroll
    for (int mask = 16; mask < kWave; mask *= 2) {
      x = combine(x, shuffle_xor<kWave>(x, mask));
    }
    return x;
  }

  // Turns products into weights relative to the query's new top.
  RB_DEVICE void weigh(int band, i64 key, bool partly, Scores (&scores)[Tile::kKeys / 16]) {
    if constexpr (kShaped) shape(band, key, scores);
    if (partly) hide(band, key, scores);
    Band& own = bands_[band];
    float top = own.top;
#pragma unroll
    for (int i = 0; i < Tile::kKeys / 16; ++i) {
#pragma unroll
      for (int j = 0; j < kSums; ++j) top = __builtin_fmaxf(top, scores[i].values[j]);
    }
    top = over_query(top, Max{});
    // Queries without a visible key so far: weights are 2^-inf = 0; there is nothing to rescale.
    const float level = top > -infinity() ? top * factor_ : 0.0f;
    const float keep = fast_exp2(own.top * factor_ - level);
    const float base = level - kLift;
    // By vectors: CDNA has instructions for two floats.
    Results sums = Results(0);
#pragma unroll
    for (int i = 0; i < Tile::kKeys / 16; ++i) {
      Results x = __builtin_bit_cast(Results, scores[i]) * factor_ - base;
#pragma unroll
      for (int j = 0; j < kSums; ++j) x[j] = fast_exp2(x[j]);
      sums += x;
      scores[i] = __builtin_bit_cast(Scores, x);
    }
    float sum = 0;
#pragma unroll
    for (int j = 0; j < kSums; ++j) sum += sums[j];
    own.top = top;
    own.sum = own.sum * keep + sum;
#pragma unroll
    for (int d = 0; d < Tile::kHeld / 16; ++d) own.out[d] *= keep;
  }

  RB_DEVICE void shape(int band, i64 key, Scores (&scores)[Tile::kKeys / 16]) const {
    // A mask has no elements past the last query and key.
    if (row_of(band) >= work_.count) return;
    const u32 lane = own_lane();
#pragma unroll
    for (int i = 0; i < Tile::kKeys / 16; ++i) {
#pragma unroll
      for (int j = 0; j < kSums; ++j) {
        const i64 at = key + i * 16 + result_row(j, lane);
        if (at >= work_.span.kv_len) continue;
        scores[i].values[j] =
            shaped_score(p_, work_, work_.first + row_of(band), at, scores[i].values[j]);
      }
    }
  }

  RB_DEVICE void hide(int band, i64 key, Scores (&scores)[Tile::kKeys / 16]) const {
    const KeyRange seen = seen_keys(p_, work_.span, work_.first + row_of(band));
    const int first = clamp_to_tile(seen.first - key);
    const int end = clamp_to_tile(seen.end - key);
#pragma unroll
    for (int i = 0; i < Tile::kKeys / 16; ++i) {
#pragma unroll
      for (int j = 0; j < kSums; ++j) {
        const int at = i * 16 + result_row(j, lane_);
        if (at < first || at >= end) scores[i].values[j] = -infinity();
      }
    }
  }
  RB_DEVICE static int clamp_to_tile(i64 x) {
    return x < 0 ? 0 : x > Tile::kKeys ? Tile::kKeys : static_cast<int>(x);
  }

  RB_DEVICE void write() const {
#pragma unroll
    for (int band = 0; band < Tile::kBands; ++band) {
      const float sum = with_sink(p_, work_.head, over_query(bands_[band].sum, Sum{}),
                                  bands_[band].top * factor_ - kLift);
      const float scale = sum == 0 ? 0.0f : 1.0f / sum;
      if (row_of(band) >= work_.count) continue;
      const i64 to = query_offset(p_.y_at, work_.span, work_.head, work_.first + row_of(band));
#pragma unroll
      for (int d = 0; d < Tile::kHeld / 16; ++d) {
#pragma unroll
        for (int j = 0; j < kSums; ++j) {
          const int column = first_held() + d * 16 + result_row(j, lane_);
          if (column < p_.v_dim) store_result(to + column, bands_[band].out[d][j] * scale);
        }
      }
    }
  }

  RB_DEVICE void store_result(i64 to, float x) const {
    if (p_.q_type == AttentionType::f32) {
      static_cast<float*>(p_.y)[to] = x;
    } else if (kNarrow && p_.q_type == AttentionType::bf16) {
      static_cast<bf16*>(p_.y)[to] = store_value<bf16>(x);
    } else {
      static_cast<T*>(p_.y)[to] = store_value<T>(x);
    }
  }

  const AttentionParams& p_;
  const TileWork& work_;
  const float factor_;  // turns a product, or a shaped score, into a score in base 2
  Shared& shared_;
  int lane_, wave_;
  Band bands_[Tile::kBands];
  i64 last_;       // the last key that a query of the tile sees
  i32 block_ = 0;  // of the row that the lane finds for the tile after the next
  Part k_[Tile::kFetched], v_[Tile::kFetched];  // the next tile's
};

template <class T, class KV, int kDim, bool kShaped>
RB_DEVICE void attention_amd(const AttentionParams& p) {
  using Attention = AmdAttention<T, KV, kDim, kShaped>;
  RB_SHARED typename Attention::Shared shared;
  TileWork work;
  if (!find_tile(p, Attention::Tile::kRows, work)) return;
  Attention attention(p, work, shared);
  attention.run();
}

// The kernels of one kind of matrix units: attention_<unit>_<dtype>_d<largest head>[_shaped]. T:
// the type of the products; with 8-bit caches f16.
#define RB_ATTENTION(unit, dtype, T, KV, dim)                                                      \
  RB_KERNEL(attention_##unit##_##dtype##_d##dim, AmdTile<dim>::kThreads, AttentionParams,          \
            (attention_amd<T, KV, dim, false>(p)))                                                 \
  RB_KERNEL(attention_##unit##_##dtype##_d##dim##_shaped, AmdTile<dim>::kThreads, AttentionParams, \
            (attention_amd<T, KV, dim, true>(p)))
#define RB_ATTENTION_DIMS(unit, dtype, T, KV) \
  RB_ATTENTION(unit, dtype, T, KV, 64)        \
  RB_ATTENTION(unit, dtype, T, KV, 128) RB_ATTENTION(unit, dtype, T, KV, 256)
#define RB_ATTENTION_KERNELS(unit)             \
  RB_ATTENTION_DIMS(unit, f16, f16, f16)       \
  RB_ATTENTION_DIMS(unit, bf16, bf16, bf16)    \
  RB_ATTENTION_DIMS(unit, f8e4m3, f16, f8e4m3) \
  RB_ATTENTION_DIMS(unit, q8_0, f16, PageCode)

}  // namespace gpu
}  // namespace rbee

#endif
