// Float weights with AVX2: sums in float, x as float.

#include "backends/cpu/simd/linear/kernels_avx2.h"
#include "backends/cpu/simd/linear/vec_avx2.h"

namespace {

// Four inputs of the 16 rows. A format F has four(data, k): inputs k to k + 3, and
// load(data, k, part): half of input k.
struct Four {
  __m256 values[4][kParts];
};

struct FormatF32 {
  [[gnu::always_inline]] static __m256 load(const std::byte* data, int64_t k, int part) {
    return load_floats(reinterpret_cast<const float*>(data) + k * panel::kPanelRows, part);
  }
  [[gnu::always_inline]] static Four four(const std::byte* data, int64_t k) {
    Four w;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      w.values[i][0] = load(data, k + i, 0);
      w.values[i][1] = load(data, k + i, 1);
    }
    return w;
  }
};

struct FormatF16 {
  [[gnu::always_inline]] static __m256 load(const std::byte* data, int64_t k, int part) {
    return load_halves(reinterpret_cast<const uint16_t*>(data) + k * panel::kPanelRows, part);
  }
  [[gnu::always_inline]] static Four four(const std::byte* data, int64_t k) {
    Four w;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      w.values[i][0] = load(data, k + i, 0);
      w.values[i][1] = load(data, k + i, 1);
    }
    return w;
  }
};

// Pairs of inputs share 32 bits: the even one moves up, the odd one loses its neighbour.
struct FormatBf16 {
  [[gnu::always_inline]] static __m256i pair(const std::byte* data, int64_t k, int part) {
    return load_step(data + k / 2 * panel::kStepBytes, part);
  }
  [[gnu::always_inline]] static __m256 even(__m256i pair) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(pair, 16));
  }
  [[gnu::always_inline]] static __m256 odd(__m256i pair) {
    return _mm256_castsi256_ps(_mm256_and_si256(pair, _mm256_set1_epi32(-65536)));
  }
  [[gnu::always_inline]] static __m256 load(const std::byte* data, int64_t k, int part) {
    return k % 2 == 0 ? even(pair(data, k, part)) : odd(pair(data, k, part));
  }
  [[gnu::always_inline]] static Four four(const std::byte* data, int64_t k) {
    Four w;
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
      const __m256i first = pair(data, k, part), second = pair(data, k + 2, part);
      w.values[0][part] = even(first);
      w.values[1][part] = odd(first);
      w.values[2][part] = even(second);
      w.values[3][part] = odd(second);
    }
    return w;
  }
};

// Four sums for each part hide the latency of the additions.
template <typename F>
void run_row(const panel::PanelProduct& p) {
  Four sums;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) sums.values[i][0] = sums.values[i][1] = _mm256_setzero_ps();
  const float* x = p.x.f32;
  int64_t k = 0;
  for (; k + 4 <= p.in; k += 4) {
    const Four w = F::four(p.packed, k);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m256 input = _mm256_broadcast_ss(x + k + i);
      sums.values[i][0] = _mm256_fmadd_ps(w.values[i][0], input, sums.values[i][0]);
      sums.values[i][1] = _mm256_fmadd_ps(w.values[i][1], input, sums.values[i][1]);
    }
  }
  for (; k < p.in; ++k) {
    const __m256 input = _mm256_broadcast_ss(x + k);
    sums.values[0][0] = _mm256_fmadd_ps(F::load(p.packed, k, 0), input, sums.values[0][0]);
    sums.values[0][1] = _mm256_fmadd_ps(F::load(p.packed, k, 1), input, sums.values[0][1]);
  }
#pragma GCC unroll 2
  for (int part = 0; part < kParts; ++part) {
    const __m256 a = _mm256_add_ps(sums.values[0][part], sums.values[1][part]);
    const __m256 b = _mm256_add_ps(sums.values[2][part], sums.values[3][part]);
    store_floats(p.y, part, _mm256_add_ps(a, b));
  }
}

template <typename F>
void unpack(const std::byte* packed, int64_t in, const panel::UnpackedPanel& out) {
  for (int64_t k = 0; k < in; ++k) {
    store_floats(out.f32 + k * panel::kPanelRows, 0, F::load(packed, k, 0));
    store_floats(out.f32 + k * panel::kPanelRows, 1, F::load(packed, k, 1));
  }
}

constexpr int kTile = 6;  // rows of x: twelve sums, two weights and one input fill the registers

template <int kRows>
void run_tile(const panel::PanelProduct& p, int64_t row) {
  __m256 acc[kRows][kParts];
  float* y = p.y + row * p.y_stride;
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
      acc[r][part] = p.accumulate ? load_floats(y + r * p.y_stride, part) : _mm256_setzero_ps();
    }
  }
  const float* x = p.x.f32 + row * p.x.stride;
  const float* w = p.panel.f32;
#pragma GCC unroll 2
  for (int64_t k = 0; k < p.in; ++k) {
    const __m256 w0 = load_floats(w + k * panel::kPanelRows, 0);
    const __m256 w1 = load_floats(w + k * panel::kPanelRows, 1);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const __m256 input = _mm256_broadcast_ss(x + r * p.x.stride + k);
      acc[r][0] = _mm256_fmadd_ps(w0, input, acc[r][0]);
      acc[r][1] = _mm256_fmadd_ps(w1, input, acc[r][1]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) store_floats(y + r * p.y_stride, part, acc[r][part]);
  }
}

void run_rows(const panel::PanelProduct& p) {
  int64_t row = 0;
  for (; row + kTile <= p.rows; row += kTile) run_tile<kTile>(p, row);
  if (p.rows - row >= 4) {
    run_tile<4>(p, row);
    row += 4;
  }
  if (p.rows - row >= 2) {
    run_tile<2>(p, row);
    row += 2;
  }
  if (row < p.rows) run_tile<1>(p, row);
}

// f32 is unpacked as it is packed.
void run_rows_f32(const panel::PanelProduct& p) {
  panel::PanelProduct plain = p;
  plain.panel.f32 = const_cast<float*>(reinterpret_cast<const float*>(p.packed));
  run_rows(plain);
}

}  // namespace

namespace rbee::cpu {

const PanelKernels linear_f32_avx2{
    .input = InputForm::f32, .row = &run_row<FormatF32>, .unpack = nullptr, .rows = &run_rows_f32};
const PanelKernels linear_f16_avx2{.input = InputForm::f32,
                                   .row = &run_row<FormatF16>,
                                   .unpack = &unpack<FormatF16>,
                                   .rows = &run_rows};
const PanelKernels linear_bf16_avx2{.input = InputForm::f32,
                                    .row = &run_row<FormatBf16>,
                                    .unpack = &unpack<FormatBf16>,
                                    .rows = &run_rows};

}  // namespace rbee::cpu
