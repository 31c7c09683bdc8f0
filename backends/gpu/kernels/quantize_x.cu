// Rounds the rows of x to int8 by groups of 32 for matvec_quant.h: d = max |x| / 127. Eight lanes
// take a group. It takes little time: x is a few rows.
#include "backends/gpu/kernels/matvec_quant.h"

namespace rbee {
namespace gpu {

constexpr int kLanes = 8;  // of a group
constexpr int kEach = 4;   // elements of a lane

template <class T>
struct alignas(sizeof(T) * kEach) Four {
  T values[kEach];
};

template <class T, int kWave>
RB_DEVICE void quantize_x(const QuantizeXParams& p) {
  const i64 groups = p.in / 32;
  const i64 mine = grid_thread() / kLanes;
  const bool live = mine < p.rows * groups;
  const i64 group = live ? mine : p.rows * groups - 1;  // all lanes of a wave must call it
  const int lane = static_cast<int>(thread_x() % kLanes);
  const T* x = static_cast<const T*>(p.x) + group * 32 + lane * kEach;
  const auto in = *reinterpret_cast<const Four<T>*>(x);
  // Compared as bits, NaN is the largest, so d becomes NaN and with it the product.
  u32 largest = 0;
  for (int i = 0; i < kEach; ++i) {
    largest = Max{}(largest, bits_of_float(load_value(in.values[i])) & 0x7fffffffu);
  }
  largest = wave_reduce<kWave, kLanes>(largest, Max{});
  const float d = float_of_bits(largest) / 127.0f;
  const float inverse = d >= 1e-37f ? 1.0f / d : 0.0f;
  u32 word = 0;
  i32 sum = 0;
  for (int i = 0; i < kEach; ++i) {
    const float scaled = floor(load_value(in.values[i]) * inverse + 0.5f);
    const bool usual = scaled >= -127.0f && scaled <= 127.0f;  // false for inf and NaN
    const i32 q = usual ? static_cast<i32>(scaled) : 0;
    word |= (static_cast<u32>(q) & 255u) << (8 * i);
    sum += q;
  }
  sum = wave_sum<kWave, kLanes / 2>(sum);
  const i32 other = shuffle_xor<kWave>(sum, kLanes / 2);
  if (!live) return;
  const i64 row = group / groups;
  const i64 piece = x_piece<kWave>(group % groups * 2 + lane / 4);
  i8* to = p.to.quants + row * p.to.row_bytes + piece + lane % 4 * kEach;
  *reinterpret_cast<u32*>(to) = word;
  if (lane == 0) {
    static_cast<XGroup*>(p.to.groups)[group] =
        XGroup{d, {static_cast<i16>(sum), static_cast<i16>(other)}};
  }
}

#define RB_QUANTIZE(lanes, wave, dtype, T) \
  RB_KERNEL(quantize_x_##dtype##_##wave, kMatvecThreads, QuantizeXParams, (quantize_x<T, lanes>(p)))
#define RB_QUANTIZE_WAVE(dtype, T) RB_WAVES(RB_QUANTIZE, dtype, T)
RB_EACH_FLOAT(RB_QUANTIZE_WAVE)

}  // namespace gpu
}  // namespace rbee
