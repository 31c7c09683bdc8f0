#pragma once
// Attention of many queries on AMD's matrix units, dense and paged: FlashAttention-2 (Dao 2023)
// with transposed products. Scores are computed as keys times queries, so that a lane holds scores
// of one query alone; its weights are then, rounded, the right operand of values times weights, and
// need no detour over shared memory. What the units differ in is the parameter Unit:
//   kWave   lanes; kEach: elements of an operand that a lane holds; kSums: of a result
//   first_k(lane)     a lane holds elements [first_k, first_k + kEach) of 16 along the sum, of row
//                     (left operand) or column (right operand) lane % 16
//   sum_row(lane, i)  the row of result element i; its column is lane % 16
//   multiply_two<T>(c, a, b)  c += a[0] * b[0] + a[1] * b[1]
//   right_operand<T>(sums, lane)  result elements, rounded, as a right operand summed over rows

#include "backends/gpu/instructions.h"
#include "backends/gpu/kernels/attention_cache.h"
#include "backends/gpu/kernels/attention_softmax.h"

namespace rbee {
namespace gpu {

constexpr int kThreads = 256;

// 16-bit elements of an operand that one lane holds.
template <int kEach>
struct alignas(kEach < 4 ? 4 : 8) Elements {
  u32 words[kEach / 2];
};

template <int kCount>
struct Sums {
  float values[kCount];
};

template <class T>
RB_DEVICE u32 pack_pair(float low, float high) {
  const u32 first = __builtin_bit_cast(u16, store_value<T>(low));
  const u32 second = __builtin_bit_cast(u16, store_value<T>(high));
  return first | second << 16;
}

template <class Unit, int kDim>
struct AmdTile {
  static constexpr int kWaves = kThreads / Unit::kWave;
  static constexpr int kBands = Unit::kWave == 64 && kDim <= 128 ? 2 : 1;  // of 16 queries
  static constexpr int kRows = kWaves * kBands * 16;
  static constexpr int kKeys = kDim <= (Unit::kWave == 64 ? 128 : 64) ? 64 : 32;
  // Padding that puts the rows read together into different banks.
  static constexpr int kPad = Unit::kEach < 8 ? 4 : 8;
  static constexpr int kKeyStride = kDim + kPad;
  static constexpr int kValueStride = kKeys + kPad;
  static constexpr int kParts = kDim / 8;                     // of 16 bytes, in a row
  static constexpr int kFetched = kKeys * kParts / kThreads;  // parts of a thread
  // Rows of values that a thread fetches one below another, to transpose them.
  static constexpr int kTall = kFetched < 4 ? kFetched : 4;
  static_assert(kFetched % kTall == 0 && kTall % 2 == 0, "threads share a tile evenly");
  template <class T>
  struct Shared {
    alignas(16) T k[kKeys * kKeyStride];
    alignas(16) T v[kDim * kValueStride];  // transposed
  };
};

// Eight elements of a key or value as they are fetched; 8-bit ones become T at the way to shared
// memory.
template <class T, class KV>
struct PartOf {
  using type = RunOf<KV>;
};
template <class T>
struct PartOf<T, T> {
  using type = Pack<T>;
};

// T: what is multiplied. KV: T too, or the 8-bit type of the keys and values. kShaped: scores are
// more than scaled products. A variant of its own, since it needs registers.
template <class T, class KV, class Unit, int kDim, bool kShaped>
class AmdAttention {
 public:
  static constexpr bool kNarrow = !SameType<T, KV>::value;
  using Part = typename PartOf<T, KV>::type;
  using Tile = AmdTile<Unit, kDim>;
  using Shared = typename Tile::template Shared<T>;
  using Operand = Elements<Unit::kEach>;
  using Result = Sums<Unit::kSums>;
  // Weights are 2^kLift times what they are, which their sum takes away again: f16 ones would be
  // subnormal from 2^-15 on, and gfx90a's matrix units take those for zeros.
  static constexpr float kLift = __is_same(T, f16) ? 14 : 0;

  RB_DEVICE AmdAttention(const AttentionParams& p, const TileWork& work, Shared& shared)
      : p_(p),
        work_(work),
        factor_(kShaped ? 1.0f : p.scale * kLog2E),
        shared_(shared),
        lane_(static_cast<int>(thread_x()) % Unit::kWave),
        wave_(static_cast<int>(thread_x()) / Unit::kWave) {}

  RB_DEVICE void run() {
    start_bands();
    const TileKeys keys = tile_keys(p_, work_);
    if (keys.first < keys.end) fetch(keys.first, keys.end);
    for (i64 key = keys.first; key < keys.end; key += Tile::kKeys) {
      barrier();  // the tile before is used up
      put();
      barrier();
      if (key + Tile::kKeys < keys.end) fetch(key + Tile::kKeys, keys.end);
      const bool partly = key < keys.all_first || key + Tile::kKeys > keys.all_end;
      add_tile(key, partly);
    }
    write();
  }

 private:
  struct Band {
    Operand q[kDim / 16];
    Result out[kDim / 16];  // rows are elements of the head
    float top, sum;         // of this lane's query; the sum of this lane's keys
  };

  RB_DEVICE int row_of(int band) const { return (wave_ * Tile::kBands + band) * 16 + lane_ % 16; }

  RB_DEVICE void start_bands() {
#pragma unroll
    for (int band = 0; band < Tile::kBands; ++band) {
#pragma unroll
      for (int i = 0; i < kDim / 16; ++i) {
        bands_[band].q[i] = load_query(row_of(band), i * 16 + Unit::first_k(lane_));
        bands_[band].out[i] = {};
      }
      bands_[band].top = -infinity();
      bands_[band].sum = 0;
    }
  }

  // Elements [at, at + kEach) of a query, f32 ones rounded to the keys' type; zeros outside.
  RB_DEVICE Operand load_query(int row, int at) const {
    Operand out{};
    if (row >= work_.count) return out;
    const i64 from = query_offset(p_.q_at, work_.span, work_.head, work_.first + row);
#pragma unroll
    for (int i = 0; i < Unit::kEach; i += 4) {
      if (at + i >= p_.head_dim) break;
      u32* to = out.words + i / 2;
      if (p_.q_type != AttentionType::f32) {
        const Elements<4> in =
            *reinterpret_cast<const Elements<4>*>(static_cast<const T*>(p_.q) + from + at + i);
        to[0] = as_multiplied(in.words[0]);
        to[1] = as_multiplied(in.words[1]);
      } else {
        const Pack<float> in = load128(static_cast<const float*>(p_.q) + from + at + i);
        to[0] = pack_pair<T>(in.values[0], in.values[1]);
        to[1] = pack_pair<T>(in.values[2], in.values[3]);
      }
    }
    return out;
  }

  // Two neighbours of q, of a 16-bit type, as T. Over 8-bit keys they may be another than T.
  RB_DEVICE u32 as_multiplied(u32 two) const {
    if (!kNarrow || p_.q_type != AttentionType::bf16) return two;
    return pack_pair<T>(float_of_bf16(static_cast<u16>(two)), float_of_bits(two & 0xffff0000u));
  }

  RB_DEVICE Part load_part(const void* base, const AttentionStrides& at, int dim, i64 key, i64 end,
                           int part) const {
    if (key >= end || part * 8 >= dim) return Part{};
    if constexpr (kNarrow) {
      return load_run<KV>(p_, base, at, work_, key, part * 8);
    } else {
      return load128(static_cast<const T*>(base) +
                     key_offset(p_, at, work_.span, work_.kv_head, key) + part * 8);
    }
  }
  RB_DEVICE static Pack<T> elements_of(const Part& part) {
    if constexpr (kNarrow) {
      return widen<T, KV>(part);
    } else {
      return part;
    }
  }

  // Reads a tile into registers; of values, kTall parts that lie one below another at a time.
  RB_DEVICE void fetch(i64 first, i64 end) {
    const int thread = static_cast<int>(thread_x());
#pragma unroll
    for (int i = 0; i < Tile::kFetched; ++i) {
      const int at = thread + i * kThreads;
      k_[i] =
          load_part(p_.k, p_.k_at, p_.head_dim, first + at / Tile::kParts, end, at % Tile::kParts);
    }
#pragma unroll
    for (int i = 0; i < Tile::kFetched; ++i) {
      const int at = thread + i / Tile::kTall * kThreads;
      const int row = at / Tile::kParts * Tile::kTall + i % Tile::kTall;
      v_[i] = load_part(p_.v, p_.v_at, p_.v_dim, first + row, end, at % Tile::kParts);
    }
  }

  RB_DEVICE void put() {
    const int thread = static_cast<int>(thread_x());
#pragma unroll
    for (int i = 0; i < Tile::kFetched; ++i) {
      const int at = thread + i * kThreads;
      const Elements<8> words = __builtin_bit_cast(Elements<8>, elements_of(k_[i]));
      T* to = shared_.k + at / Tile::kParts * Tile::kKeyStride + at % Tile::kParts * 8;
      // Rows begin at multiples of eight bytes only.
      *reinterpret_cast<Elements<4>*>(to) = {words.words[0], words.words[1]};
      *reinterpret_cast<Elements<4>*>(to + 4) = {words.words[2], words.words[3]};
    }
#pragma unroll
    for (int i = 0; i < Tile::kFetched; i += Tile::kTall) {
      const int at = thread + i / Tile::kTall * kThreads;
      T* to =
          shared_.v + at % Tile::kParts * 8 * Tile::kValueStride + at / Tile::kParts * Tile::kTall;
      Pack<T> rows[Tile::kTall];
#pragma unroll
      for (int row = 0; row < Tile::kTall; ++row) rows[row] = elements_of(v_[i + row]);
#pragma unroll
      for (int d = 0; d < 8; ++d) {
        Elements<Tile::kTall> column;
#pragma unroll
        for (int row = 0; row < Tile::kTall; row += 2) {
          column.words[row / 2] = pair(rows[row].values[d], rows[row + 1].values[d]);
        }
        *reinterpret_cast<Elements<Tile::kTall>*>(to + d * Tile::kValueStride) = column;
      }
    }
  }
  RB_DEVICE static u32 pair(T low, T high) {
    return static_cast<u32>(low.bits) | static_cast<u32>(high.bits) << 16;
  }

  RB_DEVICE void add_tile(i64 key, bool partly) {
    Result scores[Tile::kBands][Tile::kKeys / 16];
    multiply_keys(scores);
    Operand weights[Tile::kBands][Tile::kKeys / 16];
#pragma unroll
    for (int band = 0; band < Tile::kBands; ++band) {
      weigh(band, key, partly, scores[band]);
#pragma unroll
      for (int i = 0; i < Tile::kKeys / 16; ++i) {
        weights[band][i] = Unit::template right_operand<T>(scores[band][i].values, lane_);
      }
    }
    multiply_values(weights);
  }

  // The left operand of a lane from 16 rows in shared memory.
  RB_DEVICE Operand load_left(const T* rows, int stride, int at) const {
    return *reinterpret_cast<const Operand*>(rows + lane_ % 16 * stride + at +
                                             Unit::first_k(lane_));
  }

  RB_DEVICE void multiply_keys(Result (&scores)[Tile::kBands][Tile::kKeys / 16]) const {
#pragma unroll
    for (int i = 0; i < Tile::kKeys / 16; ++i) {
#pragma unroll
      for (int band = 0; band < Tile::kBands; ++band) scores[band][i] = {};
#pragma unroll
      for (int d = 0; d < kDim / 16; d += 2) {
        const T* rows = shared_.k + i * 16 * Tile::kKeyStride;
        const Operand k[2] = {load_left(rows, Tile::kKeyStride, d * 16),
                              load_left(rows, Tile::kKeyStride, d * 16 + 16)};
#pragma unroll
        for (int band = 0; band < Tile::kBands; ++band) {
          const Operand q[2] = {bands_[band].q[d], bands_[band].q[d + 1]};
          Unit::template multiply_two<T>(scores[band][i], k, q);
        }
      }
    }
  }

  RB_DEVICE void multiply_values(const Operand (&weights)[Tile::kBands][Tile::kKeys / 16]) {
#pragma unroll
    for (int d = 0; d < kDim / 16; ++d) {
#pragma unroll
      for (int i = 0; i < Tile::kKeys / 16; i += 2) {
        const T* rows = shared_.v + d * 16 * Tile::kValueStride;
        const Operand v[2] = {load_left(rows, Tile::kValueStride, i * 16),
                              load_left(rows, Tile::kValueStride, i * 16 + 16)};
#pragma unroll
        for (int band = 0; band < Tile::kBands; ++band) {
          const Operand two[2] = {weights[band][i], weights[band][i + 1]};
          Unit::template multiply_two<T>(bands_[band].out[d], v, two);
        }
      }
    }
  }

  // Every lane gets combine() over the lanes with the same query.
  template <class Combine>
  RB_DEVICE static float over_query(float x, Combine combine) {
#pragma unroll
    for (int mask = 16; mask < Unit::kWave; mask *= 2) {
      x = combine(x, shuffle_xor<Unit::kWave>(x, mask));
    }
    return x;
  }

  // Turns products into weights relative to the query's new top.
  RB_DEVICE void weigh(int band, i64 key, bool partly, Result (&scores)[Tile::kKeys / 16]) {
    if constexpr (kShaped) shape(band, key, scores);
    if (partly) hide(band, key, scores);
    Band& own = bands_[band];
    float top = own.top;
#pragma unroll
    for (int i = 0; i < Tile::kKeys / 16; ++i) {
#pragma unroll
      for (int j = 0; j < Unit::kSums; ++j) top = Max{}(top, scores[i].values[j]);
    }
    top = over_query(top, Max{});
    // Queries that saw no key yet: weights are 2^-inf = 0, and there is nothing to rescale.
    const float level = top > -infinity() ? top * factor_ : 0.0f;
    const float keep = fast_exp2(own.top * factor_ - level);
    const float base = level - kLift;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < Tile::kKeys / 16; ++i) {
#pragma unroll
      for (int j = 0; j < Unit::kSums; ++j) {
        scores[i].values[j] = fast_exp2(scores[i].values[j] * factor_ - base);
        sum += scores[i].values[j];
      }
    }
    own.top = top;
    own.sum = own.sum * keep + sum;
#pragma unroll
    for (int d = 0; d < kDim / 16; ++d) {
#pragma unroll
      for (int j = 0; j < Unit::kSums; ++j) own.out[d].values[j] *= keep;
    }
  }

  RB_DEVICE void shape(int band, i64 key, Result (&scores)[Tile::kKeys / 16]) const {
    // A mask has no elements past the last query and key.
    if (row_of(band) >= work_.count) return;
    const int lane = stays_in_loop(lane_);
#pragma unroll
    for (int i = 0; i < Tile::kKeys / 16; ++i) {
#pragma unroll
      for (int j = 0; j < Unit::kSums; ++j) {
        const i64 at = key + i * 16 + Unit::sum_row(lane, j);
        if (at >= work_.span.kv_len) continue;
        scores[i].values[j] =
            shaped_score(p_, work_, work_.first + row_of(band), at, scores[i].values[j]);
      }
    }
  }

  RB_DEVICE void hide(int band, i64 key, Result (&scores)[Tile::kKeys / 16]) const {
    const KeyRange seen = seen_keys(p_, work_.span, work_.first + row_of(band));
    const int first = clamp_to_tile(seen.first - key);
    const int end = clamp_to_tile(seen.end - key);
#pragma unroll
    for (int i = 0; i < Tile::kKeys / 16; ++i) {
#pragma unroll
      for (int j = 0; j < Unit::kSums; ++j) {
        const int at = i * 16 + Unit::sum_row(lane_, j);
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
      const float scale = sum > 0 ? 1.0f / sum : 0.0f;
      if (row_of(band) >= work_.count) continue;
      const i64 to = query_offset(p_.y_at, work_.span, work_.head, work_.first + row_of(band));
#pragma unroll
      for (int d = 0; d < kDim / 16; ++d) {
#pragma unroll
        for (int j = 0; j < Unit::kSums; ++j) {
          const int column = d * 16 + Unit::sum_row(lane_, j);
          if (column < p_.v_dim) store_result(to + column, bands_[band].out[d].values[j] * scale);
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
  const float factor_;  // makes a product, or a shaped score, one in base 2
  Shared& shared_;
  int lane_, wave_;
  Band bands_[Tile::kBands];
  Part k_[Tile::kFetched], v_[Tile::kFetched];
};

template <class T, class KV, class Unit, int kDim, bool kShaped>
RB_DEVICE void attention_amd(const AttentionParams& p) {
  using Attention = AmdAttention<T, KV, Unit, kDim, kShaped>;
  RB_SHARED typename Attention::Shared shared;
  TileWork work;
  if (!find_tile(p, Attention::Tile::kRows, work)) return;
  Attention attention(p, work, shared);
  attention.run();
}

}  // namespace gpu
}  // namespace rbee
