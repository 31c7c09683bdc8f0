#pragma once
// y = x * weight^T + bias for up to 8 rows of x and plain weights. Limited by memory bandwidth:
// reads every byte of the weights once, 16 at a time for each lane, with 8 such loads outstanding.
// x comes from the first-level cache.
#include "backends/gpu/instructions.h"
#include "backends/gpu/kernels/matvec_tiles.h"

namespace rbee {
namespace gpu {

// Neighbouring elements of kBytes, aligned to their size or to 16 bytes.
template <int kBytes>
struct alignas(kBytes < 16 ? kBytes : 16) Span {
  u32 values[kBytes / 4];
};

template <class X, class W, int kWave, int kBatch>
struct Matvec {
  static constexpr int kCount = Pack<W>::kCount;
  // Elements that are floats at a time.
  static constexpr int kPart = sizeof(W) == 2 ? 8 : 4;
  static constexpr int kOuts = matvec_outs(kBatch);
  static constexpr int kSteps = matvec_steps(kWave, kBatch);
  using Words = Span<kPart * sizeof(X)>;  // of x

  const X* x[kBatch];
  const u8* weight[kOuts];
  i64 packs;   // of a row
  i64 stride;  // packs from one step to the next
  float sums[kOuts][kBatch];

  // x counts as zeros past the row's end (not live).
  RB_DEVICE void multiply(const u32 (&words)[kOuts][4], i64 pack, bool live) {
#pragma unroll
    for (int first = 0; first < kCount; first += kPart) {
      float w[kOuts][kPart];
#pragma unroll
      for (int o = 0; o < kOuts; ++o) {
        for (int i = 0; i < kPart; ++i) w[o][i] = load_value(element<W>(words[o], first + i));
      }
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        auto in = *reinterpret_cast<const Words*>(x[b] + pack * kCount + first);
        load_anyway(in.values);
#pragma unroll
        for (u32& word : in.values) word = live ? word : 0;
#pragma unroll
        for (int i = 0; i < kPart; ++i) {
          const float value = load_value(element<X>(in.values, i));
          for (int o = 0; o < kOuts; ++o) sums[o][b] = fma(value, w[o][i], sums[o][b]);
        }
      }
      if (kBatch > 1) loads_before();  // x of all parts at once would not fit the registers
    }
  }

  // kSteps packs of each row from `first` on: all loads, then all products. Past the row's end it
  // reads the last pack again: compilers would not move conditional loads to the front.
  RB_DEVICE void trip(i64 first) {
    u32 words[kSteps][kOuts][4];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int o = 0; o < kOuts; ++o) {
        load_once(weight[o] + within(first + step * stride) * 16, words[step][o]);
      }
    }
    loads_before();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const i64 pack = first + step * stride;
      multiply(words[step], within(pack), pack < packs);
    }
  }
  RB_DEVICE i64 within(i64 pack) const { return pack < packs ? pack : packs - 1; }

  RB_DEVICE void run(const MatvecParams& p) {
    const MatvecTile<kWave, kOuts, kBatch> tile(p);
    packs = p.in / kCount;
    stride = static_cast<i64>(p.split) * kWave;
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      x[b] = static_cast<const X*>(p.x) + (b < p.rows ? b : p.rows - 1) * p.in;
      for (int o = 0; o < kOuts; ++o) sums[o][b] = 0;
    }
    for (int o = 0; o < kOuts; ++o) {
      weight[o] = tile.template weight<u8>() + tile.out(o) * packs * 16;
    }
    for (i64 first = tile.slice * kWave; first < packs; first += kSteps * stride) {
      trip(first + tile.lane);
    }
    tile.finish(sums, p.rows, p.split, [&](i64 at, i64 out, float sum) {
      if (tile.part.bias != nullptr) sum += load_value(tile.template bias<X>()[out]);
      tile.template y<X>()[at] = store_value<X>(sum);
    });
  }
};

}  // namespace gpu
}  // namespace rbee
