// y = x * weight^T + bias for up to 16 rows of x and 16-bit weights on tensor cores, sm_80 and
// later (PTX ISA: mma.m16n8k16). Rows of the weight are the product's first operand, 16 at a time,
// rows of x its second, 8 at a time. The weights' memory limits it: each byte is read once, 16 at
// a time by a lane, with 8 such loads of a lane under way.
//
// The instruction wants pairs of a row's elements from a lane, and adds them in any order. So a
// lane passes pairs of the 8 neighbours that it has loaded, of both operands.
#include "backends/cuda/kernels/mma_tiles.h"
#include "backends/shared/matvec_mma_params.h"

namespace rbee {
namespace gpu {

constexpr int kChunk = 32;  // elements of a row that four lanes read at once
constexpr int kWarps = kMatvecThreads / 32;

// Eight neighbouring elements of x as terms of the weight's type W, whose sum they are.
template <class X, class W>
struct Terms {
  static constexpr int kCount = 1;
  u32 words[1][4];
  RB_DEVICE void load(const X* from, bool live) {
    const uint4 found = *reinterpret_cast<const uint4*>(from);
    words[0][0] = live ? found.x : 0;
    words[0][1] = live ? found.y : 0;
    words[0][2] = live ? found.z : 0;
    words[0][3] = live ? found.w : 0;
  }
};
// Three terms of 8 bits each hold all of f32.
template <>
struct Terms<float, bf16> {
  static constexpr int kCount = 3;
  u32 words[3][4];
  RB_DEVICE void load(const float* from, bool live) {
    const float4 low = reinterpret_cast<const float4*>(from)[0];
    const float4 high = reinterpret_cast<const float4*>(from)[1];
    const float values[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) split(live ? values[2 * i] : 0, live ? values[2 * i + 1] : 0, i);
  }
  RB_DEVICE void split(float first, float second, int word) {
#pragma unroll
    for (int term = 0; term < kCount; ++term) {
      const bf16 a = store_value<bf16>(first), b = store_value<bf16>(second);
      first -= load_value(a);
      second -= load_value(b);
      words[term][word] = static_cast<u32>(a.bits) | static_cast<u32>(b.bits) << 16;
    }
  }
};

// kTiles: a warp's tiles of 16 rows of the weight. kN: tiles of 8 rows of x.
template <class X, class W, int kTiles, int kN>
struct MatvecMma {
  static constexpr int kSteps = 4 / kTiles;
  static constexpr int kOuts = 16 * kTiles;
  static constexpr int kRows = 8 * kN;

  const MatvecMmaParams& p;
  MatvecPart part;
  i64 first_out;
  int lane, warp, slice;
  i64 piece;  // the lane's first element of a chunk
  const W* weight[kTiles][2];
  const X* x[kN];
  float sums[kTiles][kN][4] = {};

  RB_DEVICE explicit MatvecMma(const MatvecMmaParams& params)
      : p(params),
        lane(static_cast<int>(thread_x()) % 32),
        warp(static_cast<int>(thread_x()) / 32),
        slice(warp % params.split),
        piece(lane % 4 * 8) {
    int own = 0;
    for (int i = 1; i < p.part_count; ++i) own += block_x() >= p.parts[i].first_block ? 1 : 0;
    part = p.parts[own];
    const i64 block = block_x() - part.first_block;
    first_out = (block * (kWarps / p.split) + warp / p.split) * kOuts;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      for (int half = 0; half < 2; ++half) {
        const i64 out = first_out + t * 16 + half * 8 + lane / 4;
        weight[t][half] =
            static_cast<const W*>(part.weight) + (out < part.outs ? out : part.outs - 1) * p.in;
      }
    }
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      const int row = n * 8 + lane / 4;
      x[n] = static_cast<const X*>(p.x) + (row < p.rows ? row : p.rows - 1) * p.in;
    }
  }

  // Beyond the row's end the lane reads its last piece again, and x counts as zeros.
  RB_DEVICE bool live(i64 k) const { return k < p.in; }
  RB_DEVICE i64 within(i64 k) const { return live(k) ? k : p.in - 8; }

  RB_DEVICE void trip(i64 chunk) {
    u32 words[kSteps][kTiles][2][4];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const i64 k = within((chunk + step) * kChunk + piece);
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        for (int half = 0; half < 2; ++half) {
          load_once(reinterpret_cast<const u8*>(weight[t][half] + k), words[step][t][half]);
        }
      }
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      multiply(words[step], (chunk + step) * kChunk + piece);
  }

  RB_DEVICE void multiply(const u32 (&w)[kTiles][2][4], i64 k) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      Terms<X, W> in;
      in.load(x[n] + within(k), live(k));
#pragma unroll
      for (int term = 0; term < Terms<X, W>::kCount; ++term) {
#pragma unroll
        for (int pair = 0; pair < 4; pair += 2) {
#pragma unroll
          for (int t = 0; t < kTiles; ++t) {
            const u32 a[4] = {w[t][0][pair], w[t][1][pair], w[t][0][pair + 1], w[t][1][pair + 1]};
            multiply_add<W>(sums[t][n], a, in.words[term][pair], in.words[term][pair + 1]);
          }
        }
      }
    }
  }

  RB_DEVICE void run() {
    const i64 chunks = (p.in + kChunk - 1) / kChunk;
    for (i64 chunk = slice * kSteps; chunk < chunks; chunk += p.split * kSteps) trip(chunk);
    finish();
  }

  // y = the sums of all slices + bias. All threads of the block call it.
  RB_DEVICE void finish() {
    RB_SHARED float partial[kWarps][kRows][kOuts];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        for (int i = 0; i < 4; ++i) {
          partial[warp][n * 8 + lane % 4 * 2 + i % 2][t * 16 + i / 2 * 8 + lane / 4] =
              sums[t][n][i];
        }
      }
    }
    barrier();
    const X* bias = static_cast<const X*>(part.bias);
    const int groups = kWarps / p.split;
    const i64 block_out = first_out - warp / p.split * kOuts;
    for (int at = static_cast<int>(thread_x()); at < p.rows * groups * kOuts;
         at += kMatvecThreads) {
      const int within_block = at % (groups * kOuts), row = at / (groups * kOuts);
      const int group = within_block / kOuts, m = within_block % kOuts;
      const i64 out = block_out + within_block;
      if (out >= part.outs) continue;
      float sum = bias != nullptr ? load_value(bias[out]) : 0.0f;
      for (int s = 0; s < p.split; ++s) sum += partial[group * p.split + s][row][m];
      static_cast<X*>(part.y)[row * part.outs + out] = store_value<X>(sum);
    }
  }
};

#define RB_MATVEC_MMA(x, X, w, W, tiles, n)                                                \
  RB_KERNEL_OF(matvec_mma_##x##_##w##_t##tiles##_n##n, kMatvecThreads, 2, MatvecMmaParams, \
               (MatvecMma<X, W, tiles, n>(p).run()))
#define RB_MATVEC_MMA_SIZES(x, X, w, W) \
  RB_MATVEC_MMA(x, X, w, W, 1, 1)       \
  RB_MATVEC_MMA(x, X, w, W, 1, 2)       \
  RB_MATVEC_MMA(x, X, w, W, 2, 1)       \
  RB_MATVEC_MMA(x, X, w, W, 2, 2)
RB_MATVEC_MMA_SIZES(f16, f16, f16, f16)
RB_MATVEC_MMA_SIZES(bf16, bf16, bf16, bf16)
RB_MATVEC_MMA_SIZES(f32, float, bf16, bf16)

}  // namespace gpu
}  // namespace rbee
