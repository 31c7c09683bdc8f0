// y = act((x - mean) / sqrt(variance + eps) * weight + bias) over the groups of channels of an
// image with the channels last. If a thread can hold all its pixels of an image: in one step, a
// block for a range of channels. Else in two: a block sums a chunk of the pixels for a range of
// channels; then each block merges the chunks of its groups (Chan, Golub and LeVeque 1983) and
// writes its part of the result. Sums are of differences from the chunk's first pixel, so that
// little cancels. Memory limits it.
#include "backends/gpu/kernels/quick_math.h"
#include "backends/shared/image_params.h"
#include "backends/shared/scalar.h"

namespace rbee {
namespace gpu {

constexpr int kThreads = 384;
constexpr int kAhead = 4;   // pixels that a thread asks for before it uses the first
constexpr int kJoined = 8;  // sums that one thread merges at a time

// Neighbouring channels of a pixel. 16 bytes stay words: two 16-bit values to a register.
template <class T, int kCount>
struct alignas(16) Channels {
  static_assert(kCount * sizeof(T) == 16, "one load");
  u32 words[4];

  RB_DEVICE T operator[](int k) const {
    if constexpr (sizeof(T) == 4) {
      return __builtin_bit_cast(T, words[k]);
    } else {
      return {static_cast<u16>(words[k / 2] >> k % 2 * 16)};
    }
  }
  RB_DEVICE void put(const T (&values)[kCount]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (sizeof(T) == 4) {
        words[i] = __builtin_bit_cast(u32, values[i]);
      } else {
        words[i] = values[2 * i].bits | static_cast<u32>(values[2 * i + 1].bits) << 16;
      }
    }
  }
};
template <class T>
struct Channels<T, 1> {
  T value;

  RB_DEVICE T operator[](int) const { return value; }
  RB_DEVICE void put(const T (&values)[1]) { value = values[0]; }
};

// The channels and pixels of a block and of its thread; the block reads `side` pixels side by
// side.
template <class T, int kCount>
struct Share {
  i64 image;
  int chunk;
  int channel0, width;  // of the block's range
  int first, end;       // pixels of the block
  int runs;             // of kCount channels, in a range
  int side, lane;       // pixels side by side, and the thread's among them
  int channel;          // the thread's first
  int pixel;            // the thread's first; `end`: it has none

  RB_DEVICE explicit Share(const ImageNormParams& p) {
    const u32 range = block_x() % static_cast<u32>(p.ranges);
    const u32 piece = block_x() / static_cast<u32>(p.ranges);
    chunk = static_cast<int>(piece % static_cast<u32>(p.chunks));
    image = piece / static_cast<u32>(p.chunks);
    channel0 = static_cast<int>(range) * p.range;
    width = p.channels - channel0 < p.range ? p.channels - channel0 : p.range;
    first = chunk * p.chunk;
    end = first + p.chunk < p.pixels ? first + p.chunk : p.pixels;
    runs = p.range / kCount;
    side = kThreads / runs;
    lane = static_cast<int>(thread_x()) / runs;
    channel = channel0 + (static_cast<int>(thread_x()) - lane * runs) * kCount;
    const bool has_part = lane < side && channel < channel0 + width;
    pixel = has_part ? first + lane : end;
  }
  RB_DEVICE Channels<T, kCount> load(const ImageNormParams& p, int from) const {
    return *reinterpret_cast<const Channels<T, kCount>*>(
        static_cast<const T*>(p.x) + image * p.image_stride + from * p.pixel_stride +
        channel * p.channel_stride);
  }
};

// A thread's pixels, loaded together.
template <class T, int kCount, int kPixels>
struct Pixels {
  Channels<T, kCount> values[kPixels];

  RB_DEVICE Pixels(const ImageNormParams& p, const Share<T, kCount>& share, int from) {
#pragma unroll
    for (int j = 0; j < kPixels; ++j) {
      if (from + j * share.side < share.end) values[j] = share.load(p, from + j * share.side);
    }
  }
  // Calls use(pixel, channels) for each of them.
  template <class Use>
  RB_DEVICE void each(const Share<T, kCount>& share, int from, const Use& use) const {
#pragma unroll
    for (int j = 0; j < kPixels; ++j) {
      if (from + j * share.side < share.end) use(from + j * share.side, values[j]);
    }
  }
};

template <class C>
struct ChannelSums {
  C sum, squares;
};
template <class C>
struct GroupMoments {
  C mean, squares;
};

// Sums of the block's channels over its pixels, as differences from a pivot. Those of a thread's
// channels lie a row apart, so that threads use different banks of shared memory.
template <class T, int kCount>
struct RangeSums {
  using C = Compute<T>;
  ChannelSums<C> sums[kCount][kThreads];
  C pivots[kCount][kThreads];

  // walk(use): calls use(pixel, channels) for the thread's pixels.
  template <class Walk>
  RB_DEVICE void take(const ImageNormParams& p, const Share<T, kCount>& share, const Walk& walk) {
    ChannelSums<C> own[kCount] = {};
    C pivot[kCount] = {};
    const int at = static_cast<int>(thread_x());
    if (share.pixel < share.end) {
      const Channels<T, kCount> given = share.load(p, share.first);
#pragma unroll
      for (int k = 0; k < kCount; ++k) pivot[k] = load_value(given[k]);
    }
    walk([&](int, const Channels<T, kCount>& x) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        const C apart = load_value(x[k]) - pivot[k];
        own[k].sum += apart;
        own[k].squares += apart * apart;
      }
    });
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      sums[k][at] = own[k];
      if (share.lane == 0) pivots[k][at] = pivot[k];
    }
    join(share.side, share.runs);
  }
  // Merges the sums of pixels that were read side by side.
  RB_DEVICE void join(int side, int runs) {
    for (int left = side; left > 1;) {
      const int next = (left + kJoined - 1) / kJoined;
      const int apart = next * runs;
      barrier();
      for (int i = static_cast<int>(thread_x()); i < kCount * apart; i += kThreads) {
        const int k = i / apart, at = i - k * apart;
        ChannelSums<C> all = sums[k][at];
#pragma unroll
        for (int j = 1; j < kJoined; ++j) {
          if (at + j * apart < left * runs) {
            const ChannelSums<C> other = sums[k][at + j * apart];
            all.sum += other.sum;
            all.squares += other.squares;
          }
        }
        sums[k][at] = all;
      }
      left = next;
    }
    barrier();
  }
  RB_DEVICE ChannelSums<C> of(int channel) const {
    return sums[channel % kCount][channel / kCount];
  }
  RB_DEVICE C mean(int i, C by_pixels) const {
    return pivots[i % kCount][i / kCount] + of(i).sum * by_pixels;
  }
  // The sum of the squared distances of channel i's values from `mean`.
  RB_DEVICE C spread(int i, C by_pixels, C pixels, C mean_of_all) const {
    const C apart = mean(i, by_pixels) - mean_of_all;
    const ChannelSums<C> own = of(i);
    return own.squares - own.sum * own.sum * by_pixels + pixels * apart * apart;
  }
  // Of p.part channels from `at` on; all lanes of a wave call it.
  template <int kWave>
  RB_DEVICE GroupMoments<C> of_part(const ImageNormParams& p, const Share<T, kCount>& share,
                                    int at) const {
    const int count = share.end - share.first, lane = static_cast<int>(thread_x()) % kWave;
    const C pixels = static_cast<C>(count);
    const C by_pixels = static_cast<C>(count == p.chunk ? p.by_chunk : p.by_last);
    C all = 0, squares = 0;
    for (int i = lane; i < p.part; i += kWave) all += mean(at + i, by_pixels);
    all = wave_sum<kWave>(all) * static_cast<C>(p.by_part);
    for (int i = lane; i < p.part; i += kWave) squares += spread(at + i, by_pixels, pixels, all);
    return {all, wave_sum<kWave>(squares)};
  }
};

// Block: a range of channels of a chunk of an image.
template <class T, int kCount, int kWave>
RB_DEVICE void image_norm_sums(const ImageNormParams& p) {
  using C = Compute<T>;
  RB_SHARED RangeSums<T, kCount> sums;
  const Share<T, kCount> share(p);
  sums.take(p, share, [&](const auto& use) {
    for (int i = share.pixel; i < share.end; i += kAhead * share.side) {
      Pixels<T, kCount, kAhead>(p, share, i).each(share, i, use);
    }
  });
  auto* out = static_cast<GroupMoments<C>*>(p.chunk_moments) +
              share.image * (p.channels / p.part) * p.chunks + share.chunk;
  for (int at = static_cast<int>(thread_x()) / kWave * p.part; at < share.width;
       at += kThreads / kWave * p.part) {
    const GroupMoments<C> all = sums.template of_part<kWave>(p, share, at);
    if (thread_x() % kWave == 0) {
      out[static_cast<i64>((share.channel0 + at) / p.part) * p.chunks] = all;
    }
  }
}

template <class C>
RB_DEVICE C scale_of(const ImageNormParams& p, C squares) {
  const C count = static_cast<C>(p.pixels) * static_cast<C>(p.width);
  return C(1) / sqrt(squares / count + static_cast<C>(p.eps));
}

// A group's moments, from its chunks; all lanes of a wave call it.
template <int kWave, class C>
RB_DEVICE GroupMoments<C> joined(const ImageNormParams& p, i64 image, int group) {
  const int parts = p.width / p.part, count = parts * p.chunks;
  const int last = p.pixels - (p.chunks - 1) * p.chunk;
  const int lane = static_cast<int>(thread_x()) % kWave;
  const auto* of = static_cast<const GroupMoments<C>*>(p.chunk_moments) +
                   (image * (p.channels / p.part) + group * parts) * p.chunks;
  const auto size = [&](int i) {
    const int pixels = i % p.chunks == p.chunks - 1 ? last : p.chunk;
    return static_cast<C>(pixels) * static_cast<C>(p.part);
  };
  C mean = 0, squares = 0;
#pragma unroll 2
  for (int i = lane; i < count; i += kWave) mean += size(i) * of[i].mean;
  mean = wave_sum<kWave>(mean) / (static_cast<C>(p.pixels) * static_cast<C>(p.width));
#pragma unroll 2
  for (int i = lane; i < count; i += kWave) {
    const C apart = of[i].mean - mean;
    squares += of[i].squares + size(i) * apart * apart;
  }
  return {mean, scale_of(p, wave_sum<kWave>(squares))};
}

template <class T>
RB_DEVICE Compute<T> activated(const ImageNormParams& p, Compute<T> value) {
  if (p.silu == 0) return value;
  if constexpr (sizeof(T) <= 2) {
    return quick_silu(value);
  } else {
    return silu(value);
  }
}

// The thread's weights and biases, which it loads before it has the moments.
template <class T, int kCount>
struct Affine {
  Channels<T, kCount> weight, bias;

  RB_DEVICE Affine(const ImageNormParams& p, const Share<T, kCount>& share)
      : weight(load(p.weight, p.weight_step, share, 1)),
        bias(load(p.bias, p.bias_step, share, 0)) {}
  RB_DEVICE static Channels<T, kCount> load(const void* values, i64 step,
                                            const Share<T, kCount>& share, int otherwise) {
    T fill[kCount];
#pragma unroll
    for (int k = 0; k < kCount; ++k) fill[k] = store_value<T>(static_cast<Compute<T>>(otherwise));
    Channels<T, kCount> out;
    out.put(fill);
    if (values != nullptr && share.pixel < share.end) {
      out = *reinterpret_cast<const Channels<T, kCount>*>(static_cast<const T*>(values) +
                                                          share.channel * step);
    }
    return out;
  }
};

// The factors of the thread's results; `moments` are of the groups from `group0` on.
template <class T, int kCount>
struct Normed {
  using C = Compute<T>;
  C mean[kCount], scale[kCount], bias[kCount];
  T* y;

  RB_DEVICE Normed(const ImageNormParams& p, const Share<T, kCount>& share,
                   const Affine<T, kCount>& affine, const GroupMoments<C>* moments, int group0)
      : y(static_cast<T*>(p.y) + share.image * p.pixels * p.channels + share.channel) {
    int group = share.channel / p.width, within = share.channel - group * p.width;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const GroupMoments<C> of = moments[group - group0];
      mean[k] = of.mean;
      scale[k] = of.squares * load_value(affine.weight[k]);
      bias[k] = load_value(affine.bias[k]);
      if (++within == p.width && k + 1 < kCount) {
        within = 0;
        ++group;
      }
    }
  }
  RB_DEVICE void write(const ImageNormParams& p, int pixel, const Channels<T, kCount>& x) const {
    T values[kCount];
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const C value = (load_value(x[k]) - mean[k]) * scale[k] + bias[k];
      values[k] = store_value<T>(activated<T>(p, value));
    }
    Channels<T, kCount> out;
    out.put(values);
    *reinterpret_cast<Channels<T, kCount>*>(y + static_cast<i64>(pixel) * p.channels) = out;
  }
};

// Block: a range of channels of a chunk of an image, of at most kMostNormGroups groups.
template <class T, int kCount, int kWave>
RB_DEVICE void image_norm_apply(const ImageNormParams& p) {
  using C = Compute<T>;
  using Ahead = Pixels<T, kCount, kAhead>;
  RB_SHARED GroupMoments<C> moments[kMostNormGroups];
  const Share<T, kCount> share(p);
  Ahead x(p, share, share.pixel);
  const Affine<T, kCount> affine(p, share);
  const int group0 = share.channel0 / p.width;
  const int groups = (share.channel0 + share.width - 1) / p.width - group0 + 1;
  for (int i = static_cast<int>(thread_x()) / kWave; i < groups; i += kThreads / kWave) {
    const GroupMoments<C> all = joined<kWave, C>(p, share.image, group0 + i);
    if (thread_x() % kWave == 0) moments[i] = all;
  }
  barrier();
  if (share.pixel >= share.end) return;
  const Normed<T, kCount> normed(p, share, affine, moments, group0);
  for (int i = share.pixel; i < share.end;) {
    x.each(share, i, [&](int pixel, const Channels<T, kCount>& of) { normed.write(p, pixel, of); });
    i += kAhead * share.side;
    x = Ahead(p, share, i);
  }
}

// Block: whole groups of an image, at most kMostNormGroups; a thread has at most kNormHeld pixels.
template <class T, int kCount, int kWave>
RB_DEVICE void image_norm_whole(const ImageNormParams& p) {
  using C = Compute<T>;
  RB_SHARED RangeSums<T, kCount> sums;
  RB_SHARED GroupMoments<C> moments[kMostNormGroups];
  const Share<T, kCount> share(p);
  const Pixels<T, kCount, kNormHeld> x(p, share, share.pixel);
  const Affine<T, kCount> affine(p, share);
  sums.take(p, share, [&](const auto& use) { x.each(share, share.pixel, use); });
  for (int i = static_cast<int>(thread_x()) / kWave; i < share.width / p.width;
       i += kThreads / kWave) {
    const GroupMoments<C> all = sums.template of_part<kWave>(p, share, i * p.width);
    if (thread_x() % kWave == 0) moments[i] = {all.mean, scale_of(p, all.squares)};
  }
  barrier();
  if (share.pixel >= share.end) return;
  const Normed<T, kCount> normed(p, share, affine, moments, share.channel0 / p.width);
  x.each(share, share.pixel,
         [&](int pixel, const Channels<T, kCount>& of) { normed.write(p, pixel, of); });
}

#define RB_STEPS(lanes, wave, name, T, kCount)                                 \
  RB_KERNEL_OF(image_norm_##name##_sums_##wave, kThreads, 2, ImageNormParams,  \
               (image_norm_sums<T, kCount, lanes>(p)))                         \
  RB_KERNEL_OF(image_norm_##name##_apply_##wave, kThreads, 2, ImageNormParams, \
               (image_norm_apply<T, kCount, lanes>(p)))                        \
  RB_KERNEL_OF(image_norm_##name##_whole_##wave, kThreads, 2, ImageNormParams, \
               (image_norm_whole<T, kCount, lanes>(p)))
#define RB_ANY(dtype, T) RB_WAVES(RB_STEPS, dtype, T, 1)
#define RB_PACKED(dtype, T) RB_WAVES(RB_STEPS, dtype##_packed, T, Pack<T>::kCount)
RB_EACH_FLOAT_TYPE(RB_ANY)
RB_EACH_FLOAT(RB_PACKED)

}  // namespace gpu
}  // namespace rbee
