// Kernels of packed weights for any processor: the same arithmetic as with AVX2, see
// simd/linear/int8_avx2.h, in vectors of 16 bytes.

#include "backends/cpu/linear/kernels.h"
#include "backends/cpu/linear/vec_portable.h"
// These build on the vectors.
#include "backends/cpu/simd/linear/e4m3_kernels.h"
#include "backends/cpu/simd/linear/float_kernels.h"
#include "backends/cpu/simd/linear/formats.h"
#include "backends/cpu/simd/linear/unpack.h"
// And these on the formats.
#include "backends/cpu/simd/linear/code_book_formats.h"

namespace {

// Inputs 0 and 2, and 1 and 3, of a step as 16-bit pairs.
struct InputPairs {
  Words even, odd;
};

inline Words pairs_of(int8_t low, int8_t high) {
  const uint32_t pair = static_cast<uint16_t>(low) | static_cast<uint32_t>(high) << 16;
  return reinterpret_cast<Words>(Ints{} + static_cast<int32_t>(pair));
}

inline InputPairs input_pairs(const int8_t* x) {
  return {pairs_of(x[0], x[2]), pairs_of(x[1], x[3])};
}

// Products of a step, two added in each 16-bit lane: at most 2 * 128 * 127.
template <bool kSigned>
inline Words products(Bytes w, const InputPairs& x) {
  if constexpr (kSigned) {
    const Words words = reinterpret_cast<Words>(w);
    const auto even = reinterpret_cast<Words>(reinterpret_cast<UnsignedWords>(w) << 8) >> 8;
    return even * x.even + (words >> 8) * x.odd;
  } else {
    const auto words = reinterpret_cast<UnsignedWords>(w);
    return reinterpret_cast<Words>(words & 255) * x.even +
           reinterpret_cast<Words>(words >> 8) * x.odd;
  }
}

inline Ints widened(Words x) {
  const auto wide = reinterpret_cast<Ints>(x);
  const auto low = static_cast<Ints>(reinterpret_cast<Ints>(wide << 16) >> 16);
  return low + (wide >> 16);
}

// Steps that may be summed in 16 bits.
constexpr int chain_of(int largest, int steps) {
  int chain = 1;
  while (chain < steps && 2 * 127 * largest * chain * 2 <= 32767) chain *= 2;
  return chain;
}

// Dot products of one span: weight(s) is step s, x the span's first input.
template <typename F, typename Weight>
inline Ints dot_span(const int8_t* x, Weight weight) {
  constexpr int kSpanSteps = F::kSpan / 4;
  constexpr int kChain = F::kSigned ? 1 : chain_of(F::kLargest, kSpanSteps);
  Ints sum{};
#pragma GCC unroll 8
  for (int link = 0; link < kSpanSteps; link += kChain) {
    Words chain{};
#pragma GCC unroll 8
    for (int s = link; s < link + kChain; ++s) {
      chain += products<F::kSigned>(weight(s), input_pairs(x + 4 * s));
    }
    sum += widened(chain);
  }
  return sum;
}

template <typename F>
inline Floats add_span(Floats acc, Ints dot, const Scale& scale, float x_scale, float x_sum) {
  const Floats product = __builtin_convertvector(dot, Floats) * all(x_scale);
  if constexpr (F::kShift != 0) return acc + (product - all(x_sum * F::kShift)) * scale.scale;
  acc += product * scale.scale;
  return F::kSigned ? acc : acc + all(x_sum) * scale.offset;
}

template <typename F>
void run_row(const panel::PanelProduct& p) {
  const auto* records = reinterpret_cast<const typename F::Record*>(p.packed);
  const int64_t count = p.in / (32 * F::kGroups);
  for (int part = 0; part < kParts; ++part) {
    Floats acc{};
    for (int64_t i = 0; i < count; ++i) {
      const typename F::Record& record = records[i];
      const Head head = F::head(record, part);
      for (int g = 0; g < F::kGroups; ++g) {
        const InputGroup x = input_group<F::kSpan>(p.x, i * F::kGroups + g);
        for (int half = 0; half < 32 / F::kSpan; ++half) {
          const int first = half * F::kSpan / 4;
          const Ints dot = dot_span<F>(x.q + half * F::kSpan,
                                       [&](int s) { return F::step(record, g, first + s, part); });
          acc =
              add_span<F>(acc, dot, F::scale(record, head, g, half, part), *x.scale, x.sums[half]);
        }
      }
    }
    store_floats(p.y, part, acc);
  }
}

// One row of x with a part of the unpacked panel.
template <typename F>
Floats row_of_part(const panel::PanelProduct& p, int64_t row, int part) {
  const int8_t* q = p.x.q + row * p.x.stride;
  const float* x_scales = p.x.scale + row * (p.x.stride / 32);
  const float* x_sums = (F::kSpan == 32 ? p.x.sum32 : p.x.sum16) + row * (p.x.stride / F::kSpan);
  Floats acc = p.accumulate ? load_floats(p.y + row * p.y_stride, part) : Floats{};
  const int64_t spans = p.in / F::kSpan;
  for (int64_t span = 0; span < spans; ++span) {
    const uint8_t* w = p.panel.q + span * F::kSpan * panel::kPanelRows;
    const Ints dot = dot_span<F>(q + span * F::kSpan,
                                 [&](int s) { return load_step(w + s * panel::kStepBytes, part); });
    Scale scale{};
    scale.scale = load_floats(p.panel.scale + span * panel::kPanelRows, part);
    if constexpr (kHasOffset<F>) {
      scale.offset = load_floats(p.panel.offset + span * panel::kPanelRows, part);
    }
    acc = add_span<F>(acc, dot, scale, x_scales[span * F::kSpan / 32], x_sums[span]);
  }
  return acc;
}

template <typename F>
void run_rows(const panel::PanelProduct& p) {
  for (int64_t row = 0; row < p.rows; ++row) {
    for (int part = 0; part < kParts; ++part) {
      store_floats(p.y + row * p.y_stride, part, row_of_part<F>(p, row, part));
    }
  }
}

// As quantize() of simd/linear/quantize_avx2.h.
void quantize(const float* x, int64_t in, const panel::QuantizedRow& out) {
  constexpr float kTiny = 0x1p-120f;
  for (int64_t group = 0; group < in / 32; ++group) {
    uint32_t most_bits = 0;
    for (int i = 0; i < 32; ++i) {
      const uint32_t bits = rbee::shared::bits_of_float(x[group * 32 + i]) & 0x7fffffffu;
      most_bits = bits > most_bits ? bits : most_bits;
    }
    const float most = rbee::shared::float_of_bits(most_bits);
    const float scale = most / 127.0f;
    const float inverse = most >= kTiny && most_bits < 0x7f800000u ? 127.0f / most : 0.0f;
    int sums[2] = {0, 0};
    for (int i = 0; i < 32; ++i) {
      // Adding 1.5 * 2^23 leaves no bits for a fraction: rounds to nearest, halves to even.
      const float value = x[group * 32 + i] * inverse + 0x1.8p23f - 0x1.8p23f;
      // 0 will do: an infinite or undefined scale makes the result right.
      const int q = value >= -127.0f && value <= 127.0f ? static_cast<int>(value) : 0;
      out.q[group * 32 + i] = static_cast<int8_t>(q);
      sums[i / 16] += q;
    }
    out.scale[group] = scale;
    out.sum32[group] = scale * static_cast<float>(sums[0] + sums[1]);
    out.sum16[2 * group] = scale * static_cast<float>(sums[0]);
    out.sum16[2 * group + 1] = scale * static_cast<float>(sums[1]);
  }
}

template <typename F>
constexpr panel::PanelKernels kBlockKernels{.input = panel::InputForm::quantized,
                                            .row = &run_row<F>,
                                            .unpack = &unpack<F>,
                                            .rows = &run_rows<F>};

}  // namespace

namespace rbee::cpu {
namespace {

consteval WeightKernels kernels() {
  WeightKernels all;
  all[DType::f32] = &kF32Kernels;
  all[DType::f16] = &kF16Kernels;
  all[DType::bf16] = &kBf16Kernels;
#define RB_KERNELS(name, Name, ...) all[DType::name] = &kBlockKernels<Format##Name>;
  RB_GGML_BLOCK_TYPES(RB_KERNELS)
#undef RB_KERNELS
  all[DType::f8_g128] = &kE4m3Kernels;
  return all;
}

}  // namespace

constinit const LinearIsa linear_portable{.rows = &float_rows_portable,
                                          .row_unit = 12,
                                          .quantize = &quantize,
                                          .to_bf16 = nullptr,
                                          .split = nullptr,
                                          .kernels = kernels()};

}  // namespace rbee::cpu
