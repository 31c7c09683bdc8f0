#pragma once
// Linear layers of one row of x on packed weights on Hopper: gpu/kernels/matvec_one.h, but that the
// copy engine fetches the planes of 32 rows of weights at a time into a ring of stages, and that
// integer products of the tensor cores multiply them (PTX ISA 8.x, section 9.7.14.5.10).
//
// mma.m16n8k32 with g = lane / 4 and t = lane % 4: of 16 rows of a stage a lane holds rows g and
// g + 8, and of eight neighbouring pieces pieces t and t + 4. Each product takes eight codes of one
// of the two, and x only where column g is the lane's own piece: so column c of the sums is piece
// c, and there are sums for each piece, which its scale multiplies.
#include "backends/cuda/kernels/tensor_copies.h"
#include "backends/gpu/kernels/matvec_one_groups.h"
#include "backends/gpu/kernels/matvec_one_x.h"
#include "backends/gpu/kernels/packed_piece.h"
#include "backends/shared/tensor_one_params.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace rbee {
namespace gpu {

// Tiles whose sums have been written down, and wait for being added up.
constexpr int kOneHeld = 2;
constexpr int kOneRowLanes = 8;  // of a warp, that write them down

struct OneBarriers {
  u64 full[kOneMostStages], empty[kOneMostStages];
  u64 summed[kOneHeld], written[kOneHeld];
};

// A place in a ring of `count`, and how often it has gone round, as the parity of a phase.
struct OnePlaceInRing {
  int at = 0;
  u32 parity = 0;
  RB_DEVICE void next(int count) {
    if (++at < count) return;
    at = 0;
    parity ^= 1;
  }
};

// sums += 16 x 32 codes, signed or unsigned bytes, times 32 x 8 signed bytes.
template <bool kSigned>
RB_DEVICE void multiply_bytes(i32 (&sums)[4], const u32 (&codes)[4], u32 x0, u32 x1) {
  if (kSigned) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(codes[0]), "r"(codes[1]), "r"(codes[2]), "r"(codes[3]), "r"(x0), "r"(x1));
  } else {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(codes[0]), "r"(codes[1]), "r"(codes[2]), "r"(codes[3]), "r"(x0), "r"(x1));
  }
}

// How a format's stages lie in shared memory: planes one after another, rows within.
template <class Block>
struct OneStage {
  using S = PackedStage<Block>;
  using F = PackedFormat<Block>;
  using Piece = PackedPiece<Block>;
  static constexpr int kRows = 2 * kOneTileGroups;
  static constexpr int kScaleRow = to_16(S::kScale), kSuperRow = to_16(S::kSuper);
  static constexpr int kHigh = kRows * S::kLow;
  static constexpr int kScale = kHigh + kRows * S::kHigh;
  static constexpr int kSuper = kScale + kRows * kScaleRow;
  static constexpr int kBytes = kRows * S::kBytes;
  static constexpr int kElements = Piece::kElements;
  static constexpr int kWords = kElements / 4;
  static constexpr bool kHalves = Block::kGroup == 16;  // two scales for 32 elements
  static constexpr bool kMinima = F::kOffset == 0 && F::kLow < 8 && F::kCodeBook == CodeBook::none;
  static constexpr bool kNibbles = F::kLow == 4 && F::kHigh == 0 && F::kCodeBook == CodeBook::none;
  static constexpr int kSums = kHalves || kNibbles ? 2 : 1;  // of a piece: halves, kinds of nibbles
  static constexpr int kGroups = kElements == 32 ? 2 : 1;    // of 32, that a lane scales of a row
};

// The warp that fetches, by one lane.
template <class Block>
RB_DEVICE void fetch_stages(const TensorOneParams& p, OneBarriers& barriers, u32 ring) {
  const OneGroups<AnyResult> groups(p.one);
  using Stage = OneStage<Block>;
  using S = PackedStage<Block>;
  constexpr int kWord = 2;  // of the maps
  const u64 once = read_once_policy();
  i32 early = p.early;
  OnePlaceInRing stage;
  for (i32 tile = static_cast<i32>(block_x()); tile < p.tiles; tile += blocks_x()) {
    const OnePlace place = groups.place_of(tile * kOneTileGroups);
    // Of 16 rows each: the first rows of the groups and the second ones, or neighbours.
    const bool gated = p.one.gate != 0;
    const i32 second = place.step == 1 ? place.out + kOneTileGroups : place.out + place.step;
    const TensorMap* first_maps = p.maps[place.index];
    const TensorMap* second_maps = p.maps[gated ? 1 : place.index];
    for (i32 step = 0; step < p.steps; ++step) {
      wait_phase(&barriers.empty[stage.at], stage.parity ^ 1);
      if (early-- == 0) wait_for_previous_kernel();
      u64* full = &barriers.full[stage.at];
      arrive_with_bytes(full, Stage::kBytes);
      const u32 to = ring + static_cast<u32>(stage.at * Stage::kBytes);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const TensorMap* maps = half == 0 ? first_maps : second_maps;
        const i32 row = half == 0 ? place.out : second;
        const int at = half * kOneTileGroups;
        const auto copy = [&](int plane, int base, int row_bytes, int step_bytes) {
          const u32 there = to + base + at * row_bytes;
          const int word = (step * step_bytes & ~15) / kWord;
          // Stages have less than a line of the others' rows.
          if (plane < 2) return copy_box(there, maps[plane], full, word, row, once);
          copy_box<false>(there, maps[plane], full, word, row, 0, 0);
        };
        copy(0, 0, S::kLow, S::kLow);
        if (S::kHigh > 0) copy(1, Stage::kHigh, S::kHigh, S::kHigh);
        copy(2, Stage::kScale, Stage::kScaleRow, S::kScale);
        if (S::kSuper > 0) copy(3, Stage::kSuper, Stage::kSuperRow, S::kSuper);
      }
      stage.next(p.stages);
    }
  }
}

// Of a warp that multiplies: 16 rows of a stage, and eight of its pieces.
template <class Block>
class OneProducts {
 public:
  using Stage = OneStage<Block>;
  using S = PackedStage<Block>;
  using F = PackedFormat<Block>;
  using Piece = PackedPiece<Block>;

  // x: see stage_x().
  RB_DEVICE OneProducts(const TensorOneParams& p, const u8* x)
      : x_(x),
        groups_(reinterpret_cast<const OneGroup*>(x + inputs(p))),
        g_(static_cast<int>(thread_x()) % 32 / 4),
        t_(static_cast<int>(thread_x()) % 4),
        row_(static_cast<int>(thread_x()) / 32 % 2 * 16 + g_),
        octet_(static_cast<int>(thread_x()) / 64) {
    const bool mine = g_ % 4 == t_;
    const int piece = octet_ * 8 + g_ / 4 * 4 + t_;
    x_first_ = mine ? piece * Stage::kElements : zeros_at(p);
    x_step_ = mine ? S::kElements : 0;
  }

  RB_DEVICE static i32 inputs(const TensorOneParams& p) { return p.steps * S::kElements; }
  // Zeros that lanes without x read, behind x and its groups.
  RB_DEVICE static i32 zeros_at(const TensorOneParams& p) {
    return inputs(p) + inputs(p) / 32 * static_cast<i32>(sizeof(OneGroup));
  }

  RB_DEVICE void begin() {
    x_at_ = x_first_;
    sums_[0] = sums_[1] = 0;
  }

  // Adds a stage; released() is called once nothing of it is read any more.
  template <class Released>
  RB_DEVICE void add(const u8* stage, i32 step, const Released& released) {
    Piece pieces[2][2];  // of the two products, of rows g and g + 8
#pragma unroll
    for (int product = 0; product < 2; ++product) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        // Rows of odd g take the pieces in the other order, so that lanes read other banks.
        const int piece = octet_ * 8 + (product ^ (g_ & 1)) * 4 + t_;
        pieces[product][r].load(SharedBytes{stage + (row_ + 8 * r) * S::kLow},
                                SharedBytes{stage + Stage::kHigh + (row_ + 8 * r) * S::kHigh},
                                piece);
      }
    }
    const int group = octet_ * (4 * Stage::kGroups) + t_ * Stage::kGroups;
    Scales scales;
    load_scales(stage, step, group, scales);
    u32 x[Stage::kWords];
#pragma unroll
    for (int i = 0; i < Stage::kWords / 4; ++i) {
      const Bytes16 some = reinterpret_cast<const Bytes16*>(x_ + x_at_)[i];
#pragma unroll
      for (int w = 0; w < 4; ++w) x[4 * i + w] = some.words[w];
    }
    x_at_ += x_step_;
    const OneGroup* of_x = groups_ + step * (S::kElements / 32) + group;
    OneGroup x_groups[Stage::kGroups];
#pragma unroll
    for (int e = 0; e < Stage::kGroups; ++e) x_groups[e] = of_x[e];
    i32 dots[Stage::kSums][4];
    const bool second = (t_ >= 2) != (g_ % 2 != 0);  // which product has this lane's columns
#pragma unroll
    for (int product = 0; product < 2; ++product) {
      i32 sums[Stage::kSums][4] = {};
      multiply(pieces[product], x, sums);
#pragma unroll
      for (int s = 0; s < Stage::kSums; ++s) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          dots[s][i] = product == 0 || second ? sums[s][i] : dots[s][i];
        }
      }
    }
    released();
#pragma unroll
    for (int r = 0; r < 2; ++r) add_scaled(scales[r], dots, r, x_groups, group);
  }

  // put(octet, row, sum) for this lane's rows of the stage, once all stages of a tile have been
  // added, and then done(), by kOneRowLanes lanes of a warp.
  template <class Put, class Done>
  RB_DEVICE void end(const Put& put, const Done& done) {
    float sums[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) sums[r] = wave_sum<32, 4>(sums_[r]);
    if (t_ != 0) return;
#pragma unroll
    for (int r = 0; r < 2; ++r) put(octet_, row_ + 8 * r, sums[r]);
    done();
  }

 private:
  using Scales = StoredScale<Block>[2][Stage::kGroups];  // of rows g and g + 8

  RB_DEVICE void load_scales(const u8* stage, i32 step, int group, Scales& scales) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = row_ + 8 * r;
      const SharedBytes scale{stage + Stage::kScale + row * Stage::kScaleRow +
                              (step * S::kScale & 15)};
      const SharedBytes super{stage + Stage::kSuper + row * Stage::kSuperRow +
                              (step * S::kSuper & 15)};
#pragma unroll
      for (int e = 0; e < Stage::kGroups; ++e) scales[r][e].load(scale, super, group + e);
    }
  }

  // To the sum of row g + 8 r.
  RB_DEVICE void add_scaled(const StoredScale<Block> (&scales)[Stage::kGroups],
                            const i32 (&dots)[Stage::kSums][4], int r,
                            const OneGroup (&x)[Stage::kGroups], int group) {
    if constexpr (Stage::kNibbles) {
      const i32 both[2] = {dots[0][2 * r] + (dots[1][2 * r] >> 4),
                           dots[0][2 * r + 1] + (dots[1][2 * r + 1] >> 4)};
      scale_nibbles(scales, both, x, group, sums_[r]);
    } else {
#pragma unroll
      for (int e = 0; e < Stage::kGroups; ++e) {
        const PackedScale scale = scales[e].value((group + e) & 7);
#pragma unroll
        for (int half = 0; half < (Stage::kHalves ? 2 : 1); ++half) {
          // Codes of 8 bits: two pieces are a group.
          const i32 dot =
              Stage::kGroups == 1 ? dots[0][2 * r] + dots[0][2 * r + 1] : dots[half][2 * r + e];
          sums_[r] = scaled(scale, half, dot, x[e], sums_[r]);
        }
      }
    }
  }

  // Sums of pieces t of rows g and g + 8, whose words come in pairs: of neighbours along the piece.
  RB_DEVICE static void multiply(const Piece (&rows)[2], const u32 (&x)[Stage::kWords],
                                 i32 (&sums)[Stage::kSums][4]) {
    if constexpr (Stage::kNibbles) {
      // High nibbles where they are, as unsigned bytes 16 times as large; x lies as they do.
#pragma unroll
      for (int w = 0; w < 4; w += 2) {
        const u32 words[4] = {rows[0].low[w], rows[1].low[w], rows[0].low[w + 1],
                              rows[1].low[w + 1]};
        u32 low[4], high[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          low[i] = words[i] & 0x0f0f0f0fu;
          high[i] = words[i] & 0xf0f0f0f0u;
        }
        multiply_bytes<true>(sums[0], low, x[2 * w], x[2 * w + 1]);
        multiply_bytes<false>(sums[1], high, x[2 * w + 2], x[2 * w + 3]);
      }
    } else {
      u32 codes[2][Stage::kWords];
      rows[0].unpack(codes[0]);
      rows[1].unpack(codes[1]);
#pragma unroll
      for (int w = 0; w < Stage::kWords; w += 2) {
        const u32 four[4] = {codes[0][w], codes[1][w], codes[0][w + 1], codes[1][w + 1]};
        multiply_bytes<true>(sums[Stage::kHalves ? w / 4 : 0], four, x[w], x[w + 1]);
      }
    }
  }

  RB_DEVICE static float scaled(const PackedScale& scale, int half, i32 dot, const OneGroup& x,
                                float sum) {
    constexpr float kOffset = F::kOffset;
    const float x_sum = Stage::kHalves ? x.halves[half] : x.total;
    float product = x.d * static_cast<float>(dot);
    if (F::kOffset != 0) product = fma(-kOffset, x_sum, product);
    sum = fma(scale.d[half], product, sum);
    if (Stage::kMinima) sum = fma(scale.m[half], x_sum, sum);
    return sum;
  }

  // The sums of two neighbouring groups, the first of an even number.
  RB_DEVICE static void scale_nibbles(const StoredScale<Block> (&scales)[2], const i32 (&dots)[2],
                                      const OneGroup (&x)[2], int group, float& sum) {
    if constexpr (F::kScaleBytes == 16) {
      // Both pairs of 6 bits of one record (pair_of_6) at once, and as integers.
      const packed::KScale& record = scales[0];
      const int at = group & 7;
      const u32 low = (at < 4 ? record.low : record.high) >> (8 * (at & 2));
      const u32 tops = record.tops >> (4 * at);
      const i32 d[2] = {static_cast<i32>(low & 63u), static_cast<i32>(low >> 8 & 63u)};
      const u32 m[2] = {(low >> 6 & 3u) | (tops << 2 & 60u), (low >> 14 & 3u) | (tops >> 2 & 60u)};
      const float products = fma(x[1].d, static_cast<float>(dots[1] * d[1]),
                                 x[0].d * static_cast<float>(dots[0] * d[0]));
      const float minima =
          fma(x[1].total, static_cast<float>(m[1]), x[0].total * static_cast<float>(m[0]));
      sum = fma(packed::low_half(record.halves), products, sum);
      sum = fma(-packed::high_half(record.halves), minima, sum);
    } else {
#pragma unroll
      for (int e = 0; e < 2; ++e)
        sum = scaled(scales[e].value((group + e) & 7), 0, dots[e], x[e], sum);
    }
  }

  const u8* x_;
  const OneGroup* groups_;
  const int g_, t_, row_, octet_;
  i32 x_first_, x_step_, x_at_ = 0;
  float sums_[2];
};

// Named barriers: behind kStart the others can be waited for; behind kInput x is in its place;
// kSquares keeps nobody waiting but the warp that writes, whose own start may take longer.
enum { kInput = 1, kStart = 2, kSquares = 3 };
using OneSquares = NormSquares<32, kOneConsumers>;

// Until the kernels in front have written x. Another launch of the same product lets this one begin
// only when it has x (write_tiles()): for its end this one waits at its own, so that who waits for
// this one has waited for both.
RB_DEVICE void wait_for_x(const TensorOneParams& p) {
  if (p.behind_another == 0) wait_for_previous_kernel();
}

// 16 bytes as other multiprocessors left them: behind another launch no kernel's end has emptied
// the first-level cache.
RB_DEVICE void load_of_device(const u32* from, u32* words) {
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "l"(from)
               : "memory");
}

// x of type T and the norm's weight as the threads that multiply read them: runs of 8. Code for one
// type alone, since every kernel of a layer waits for it, and instructions are fetched too.
template <class T>
class OneInput {
 public:
  RB_DEVICE explicit OneInput(const MatvecOneParams& p)
      : p_(p), filled_(p.in / kXRun), thread_(static_cast<i32>(thread_x())) {
    if (p.norm_weight != nullptr) load(p.norm_weight, 0, weight_);
  }

  // put(run, values) as XRuns::each(), whose result it returns.
  template <class Put>
  RB_DEVICE float each(i32 runs, const Put& put) {
    const bool norm = p_.norm_weight != nullptr;
    load(p_.x, 0, x_);
    float squares = 0;
    int left = kAhead;
#pragma unroll 1
    for (i32 first = 0; first < runs; first += kOneConsumers) {
      if (left == 0) {
        load(p_.x, first, x_);
        if (norm) load(p_.norm_weight, first, weight_);
        left = kAhead;
      }
      float values[kXRun];
#pragma unroll
      for (int i = 0; i < kXRun; ++i) values[i] = load_value(element<T>(x_[0].words, i));
      if (norm) {
#pragma unroll
        for (int i = 0; i < kXRun; ++i) {
          squares = fma(values[i], values[i], squares);
          values[i] *= load_value(element<T>(weight_[0].words, i));
        }
      }
      put(first + thread_, values);
#pragma unroll
      for (int k = 0; k + 1 < kAhead; ++k) {
        x_[k] = x_[k + 1];
        weight_[k] = weight_[k + 1];
      }
      --left;
    }
    return squares;
  }

 private:
  static constexpr int kAhead = 8 / sizeof(T);  // runs under way
  struct alignas(16) Eight {
    u32 words[kXRun * sizeof(T) / 4];
  };

  RB_DEVICE void load(const void* from, i32 first, Eight (&to)[kAhead]) const {
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const i32 run = first + k * kOneConsumers + thread_;
      to[k] = Eight{};
      if (run >= filled_) continue;
      const Eight& eight = static_cast<const Eight*>(from)[run];
#pragma unroll
      for (int word = 0; word < kXRun * static_cast<int>(sizeof(T)) / 4; word += 4) {
        load_of_device(eight.words + word, to[k].words + word);
      }
    }
  }

  const MatvecOneParams& p_;
  const i32 filled_, thread_;
  Eight x_[kAhead], weight_[kAhead] = {};
};

// Rounds x by the threads that multiply: bytes in the order of the elements, of nibbles as words
// hold them (those of low nibbles in pairs, then those of high ones), groups behind them.
template <class Block, class T>
RB_DEVICE void stage_x(const TensorOneParams& p, u8* to) {
  const i32 inputs = OneProducts<Block>::inputs(p);
  OneInput<T> x(p.one);
  wait_for_x(p);
  const float squares = x.each(inputs / kXRun, [&](i32 run, const float(&values)[kXRun]) {
    OneGroup group;
    const RoundedRun rounded = round_run<32>(values, group);
    if (run >= inputs / kXRun) return;
    if (OneStage<Block>::kNibbles) {
      u32* words = reinterpret_cast<u32*>(to) + run / 2 * 4 + run % 2;
      words[0] = rounded.words[0];
      words[2] = rounded.words[1];
    } else {
      reinterpret_cast<RoundedRun*>(to)[run] = rounded;
    }
    if (run % 4 == 0) reinterpret_cast<OneGroup*>(to + inputs)[run / 4] = group;
  });
  if (thread_x() < 8) reinterpret_cast<u32*>(to + OneProducts<Block>::zeros_at(p))[thread_x()] = 0;
  OneSquares::leave(p.one, squares);
  named_arrive(kSquares, kOneConsumers + 32);
  named_wait(kInput, kOneConsumers);
}

// The sums of a tile's rows by octets of pieces, one for each warp that has the row.
constexpr int kOneOctets = kOnePieces / 8;
struct OneSums {
  float of[kOneOctets][2 * kOneTileGroups];
};

// A warp that multiplies.
template <class Block, class T>
RB_DEVICE void sum_tiles(const TensorOneParams& p, OneBarriers& barriers, u8* ring,
                         OneSums (&tiles)[kOneHeld]) {
  using Stage = OneStage<Block>;
  u8* x = ring + p.stages * Stage::kBytes;
  stage_x<Block, T>(p, x);
  OneProducts<Block> products(p, x);
  const bool leads = thread_x() % 32 == 0;
  OnePlaceInRing stage, held;
  for (i32 tile = static_cast<i32>(block_x()); tile < p.tiles; tile += blocks_x()) {
    products.begin();
    for (i32 step = 0; step < p.steps; ++step) {
      wait_phase(&barriers.full[stage.at], stage.parity);
      products.add(ring + stage.at * Stage::kBytes, step, [&] {
        wave_barrier();
        if (leads) arrive(&barriers.empty[stage.at]);
      });
      stage.next(p.stages);
    }
    wait_phase(&barriers.written[held.at], held.parity ^ 1);
    products.end([&](int octet, int row, float sum) { tiles[held.at].of[octet][row] = sum; },
                 [&] { arrive(&barriers.summed[held.at]); });
    held.next(kOneHeld);
  }
}

// The warp that adds up and writes. What it needs besides it asks for while others multiply. Lanes
// g and g + 16 have the results of group g of a tile; neighbouring rows lie so in a stage, others
// in two halves.
template <class T>
RB_DEVICE void write_tiles(const TensorOneParams& p, OneBarriers& barriers,
                           const OneSums (&tiles)[kOneHeld]) {
  OneGroups<OneResult<T>, OwnHeadPlaces> groups(p.one);
  groups.ask();
  const int lane = static_cast<int>(thread_x()) % 32;
  const int of_tile = lane % kOneTileGroups, row = lane / kOneTileGroups;
  i32 tile = static_cast<i32>(block_x());
  const auto group_of = [&](i32 some) { return some * kOneTileGroups + of_tile; };
  OneTarget target = groups.target(group_of(tile), row);
  wait_for_x(p);
  if (p.before_another != 0) start_next_kernel();
  named_wait(kSquares, kOneConsumers + 32);
  const float factor = OneSquares::factor(p.one);
  OnePlaceInRing held;
  for (; tile < p.tiles; tile += blocks_x()) {
    const i32 group = group_of(tile);
    groups.complete(target, row);
    const bool neighbours = p.one.gate == 0 && groups.place_of(group).step == 1;
    const int place = neighbours ? 2 * of_tile + row : lane;
    wait_phase(&barriers.summed[held.at], held.parity);
    float sum = 0;
#pragma unroll
    for (int octet = 0; octet < kOneOctets; ++octet) sum += tiles[held.at].of[octet][place];
    arrive(&barriers.written[held.at]);
    sum *= factor;
    const float other = shuffle_xor<32>(sum, kOneTileGroups);
    groups.put(target, sum, other);
    target = groups.target(group_of(tile + static_cast<i32>(blocks_x())), row);
    held.next(kOneHeld);
  }
  if (p.behind_another != 0) wait_for_previous_kernel();
}

RB_DEVICE void start_barriers(OneBarriers& barriers, int stages) {
  for (int i = 0; i < stages; ++i) {
    start_barrier(&barriers.full[i], 1);
    start_barrier(&barriers.empty[i], kOneWarps);
  }
  for (int i = 0; i < kOneHeld; ++i) {
    start_barrier(&barriers.summed[i], kOneWarps * kOneRowLanes);
    start_barrier(&barriers.written[i], 32);
  }
  publish_barriers();
}

template <class Block, class T>
RB_DEVICE void matvec_one_tma(const TensorOneParams& p) {
  if (p.before_another == 0) start_next_kernel();
  RB_SHARED OneBarriers barriers;
  RB_SHARED OneSums tiles[kOneHeld];
  extern __shared__ __align__(kOneAlignment) u8 ring[];
  const int warp = static_cast<int>(thread_x()) / 32;
  if (warp == kOneWarps) {
    const bool leads = thread_x() % 32 == 0;
    if (leads) start_barriers(barriers, p.stages);
    wave_barrier();
    named_arrive(kStart, kOneTensorThreads);
    if (leads) fetch_stages<Block>(p, barriers, shared_address(ring));
    return;
  }
  named_wait(kStart, kOneTensorThreads);
  if (warp < kOneWarps) return sum_tiles<Block, T>(p, barriers, ring, tiles);
  write_tiles<T>(p, barriers, tiles);
}

// RB_KERNEL_AHEAD, but that it lets the next kernel begin itself.
#define RB_ONE_TMA(x, X, dtype, Block)                                          \
  extern "C" __global__ void __launch_bounds__(kOneTensorThreads, 1)            \
      matvec_one_tma_##x##_##dtype(const __grid_constant__ TensorOneParams p) { \
    matvec_one_tma<Block, X>(p);                                                \
  }
#define RB_MATVEC_ONE_TMA(dtype, Block) \
  RB_ONE_TMA(f32, float, dtype, Block)  \
  RB_ONE_TMA(f16, f16, dtype, Block)    \
  RB_ONE_TMA(bf16, bf16, dtype, Block)

}  // namespace gpu
}  // namespace rbee

#else
#define RB_MATVEC_ONE_TMA(dtype, Block)
#endif
