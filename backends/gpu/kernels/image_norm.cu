// y = act((x - mean) / sqrt(variance + eps) * weight + bias) over the groups of channels of an
// image with the channels last. Small images in one step, a block for a range of channels of all
// pixels. Larger ones in three: a block sums a chunk of the pixels for a range of channels, one
// joins the chunks of a group (Chan, Golub and LeVeque 1983), and the last writes the result. Sums
// are of differences from the image's first pixel, so that little cancels. Limited by memory.
#include "backends/gpu/kernels/quick_math.h"
#include "backends/shared/image_params.h"
#include "backends/shared/scalar.h"

namespace rbee {
namespace gpu {

constexpr int kThreads = 384;
constexpr int kJoinThreads = 64;
constexpr int kAhead = 4;  // pixels that a thread asks for before it uses the first

// Neighbouring channels of a pixel.
template <class T, int kCount>
struct alignas(kCount > 1 ? 16 : sizeof(T)) Channels {
  T values[kCount];
};

// Which channels of which pixels a block and a thread of it take: `side` pixels are read side by
// side.
template <class T, int kCount>
struct Share {
  i64 image;
  int channel0, width;  // of the block's range
  int first, end;       // pixels of the block
  int runs;             // of kCount channels, in a range
  int side, lane;       // pixels side by side, and the thread's among them
  int channel;          // the thread's first
  bool has_part;        // false: the thread has nothing to do

  RB_DEVICE explicit Share(const ImageNormParams& p) {
    const u32 range = block_x() % static_cast<u32>(p.ranges);
    const u32 piece = block_x() / static_cast<u32>(p.ranges);
    const int chunk = static_cast<int>(piece % static_cast<u32>(p.chunks));
    image = piece / static_cast<u32>(p.chunks);
    channel0 = static_cast<int>(range) * p.range;
    width = p.channels - channel0 < p.range ? p.channels - channel0 : p.range;
    first = chunk * p.chunk;
    end = first + p.chunk < p.pixels ? first + p.chunk : p.pixels;
    runs = p.range / kCount;
    side = kThreads / runs;
    lane = static_cast<int>(thread_x()) / runs;
    channel = channel0 + (static_cast<int>(thread_x()) - lane * runs) * kCount;
    has_part = lane < side && channel < channel0 + width;
  }
  RB_DEVICE Channels<T, kCount> load(const ImageNormParams& p, int pixel) const {
    return *reinterpret_cast<const Channels<T, kCount>*>(
        static_cast<const T*>(p.x) + image * p.image_stride + pixel * p.pixel_stride +
        channel * p.channel_stride);
  }
  // use(pixel, channels) for the thread's pixels of the block.
  template <class Use>
  RB_DEVICE void each(const ImageNormParams& p, const Use& use) const {
    for (int i = first + lane; i < end; i += kAhead * side) {
      Channels<T, kCount> ahead[kAhead];
#pragma unroll
      for (int j = 0; j < kAhead; ++j) {
        if (i + j * side < end) ahead[j] = load(p, i + j * side);
      }
#pragma unroll
      for (int j = 0; j < kAhead; ++j) {
        if (i + j * side < end) use(i + j * side, ahead[j]);
      }
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

// Sums of the block's channels over its pixels. Those of a thread's channels lie a row apart, so
// that threads do not meet in the banks of shared memory.
template <class T, int kCount>
struct RangeSums {
  using C = Compute<T>;
  ChannelSums<C> sums[kCount][kThreads];
  C pivots[kCount][kThreads];

  RB_DEVICE void take(const ImageNormParams& p, const Share<T, kCount>& share) {
    ChannelSums<C> own[kCount] = {};
    const int at = static_cast<int>(thread_x());
    if (share.has_part) {
      const Channels<T, kCount> given = share.load(p, 0);
      C pivot[kCount];
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        pivot[k] = load_value(given.values[k]);
        if (share.lane == 0) pivots[k][at] = pivot[k];
      }
      share.each(p, [&](int, const Channels<T, kCount>& x) {
#pragma unroll
        for (int k = 0; k < kCount; ++k) {
          const C apart = load_value(x.values[k]) - pivot[k];
          own[k].sum += apart;
          own[k].squares += apart * apart;
        }
      });
    }
    // Pixels that were read side by side are joined, half of them with the other half.
#pragma unroll
    for (int k = 0; k < kCount; ++k) sums[k][at] = own[k];
    for (int left = share.side; left > 1;) {
      const int half = (left + 1) / 2;
      barrier();
      if (share.lane + half < left) {
#pragma unroll
        for (int k = 0; k < kCount; ++k) {
          const ChannelSums<C> other = sums[k][at + half * share.runs];
          sums[k][at].sum += other.sum;
          sums[k][at].squares += other.squares;
        }
      }
      left = half;
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
};

// Block: a range of channels of a chunk of an image.
template <class T, int kCount>
RB_DEVICE void image_norm_sums(const ImageNormParams& p) {
  using C = Compute<T>;
  RB_SHARED RangeSums<T, kCount> sums;
  const Share<T, kCount> share(p);
  sums.take(p, share);
  const C pixels = static_cast<C>(share.end - share.first);
  const C by_pixels = static_cast<C>(share.end - share.first == p.chunk ? p.by_chunk : p.by_last);
  const i64 row = (share.image * p.chunks + share.first / p.chunk) * (p.channels / p.part);
  auto* out = static_cast<GroupMoments<C>*>(p.chunk_moments) + row;
  for (int at = static_cast<int>(thread_x()) * p.part; at < share.width; at += kThreads * p.part) {
    GroupMoments<C> all = {};
#pragma unroll 4
    for (int i = 0; i < p.part; ++i) all.mean += sums.mean(at + i, by_pixels);
    all.mean *= static_cast<C>(p.by_part);
#pragma unroll 4
    for (int i = 0; i < p.part; ++i) {
      all.squares += sums.spread(at + i, by_pixels, pixels, all.mean);
    }
    out[(share.channel0 + at) / p.part] = all;
  }
}

template <class C>
RB_DEVICE C scale_of(const ImageNormParams& p, C squares) {
  const C count = static_cast<C>(p.pixels) * static_cast<C>(p.width);
  return C(1) / sqrt(squares / count + static_cast<C>(p.eps));
}

// Block: a group of an image.
template <class T, int kWave>
RB_DEVICE void image_norm_join(const ImageNormParams& p) {
  using C = Compute<T>;
  RB_SHARED C slots[kJoinThreads / kWave];
  const u32 image = block_x() / p.groups, group = block_x() % p.groups;
  const int parts = p.width / p.part, row = p.channels / p.part;
  const auto* first = static_cast<const GroupMoments<C>*>(p.chunk_moments) +
                      static_cast<i64>(image) * p.chunks * row + group * parts;
  const auto part = [&](int i) { return first[i / parts * row + i % parts]; };
  const auto size = [&](int i) {
    const int left = p.pixels - i / parts * p.chunk;
    return static_cast<C>((left < p.chunk ? left : p.chunk) * p.part);
  };
  const int count = p.chunks * parts;
  const C all = static_cast<C>(p.pixels) * static_cast<C>(p.width);
  C mean = 0, squares = 0;
  for (int i = static_cast<int>(thread_x()); i < count; i += kJoinThreads) {
    mean += size(i) * part(i).mean;
  }
  mean = block_sum<kWave, kJoinThreads>(mean, slots) / all;
  for (int i = static_cast<int>(thread_x()); i < count; i += kJoinThreads) {
    const GroupMoments<C> of = part(i);
    squares += of.squares + size(i) * (of.mean - mean) * (of.mean - mean);
  }
  squares = block_sum<kWave, kJoinThreads>(squares, slots);
  if (thread_x() != 0) return;
  static_cast<GroupMoments<C>*>(p.moments)[block_x()] = {mean, scale_of(p, squares)};
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

// Normalises the block's pixels; `moments` are of the groups from `group0` on.
template <class T, int kCount>
RB_DEVICE void write_normed(const ImageNormParams& p, const Share<T, kCount>& share,
                            const GroupMoments<Compute<T>>* moments, int group0) {
  using C = Compute<T>;
  if (!share.has_part) return;
  const T* weights = static_cast<const T*>(p.weight);
  const T* biases = static_cast<const T*>(p.bias);
  C mean[kCount], scale[kCount], bias[kCount];
  int group = share.channel / p.width, within = share.channel - group * p.width;
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    const int c = share.channel + k;
    const GroupMoments<C> of = moments[group - group0];
    mean[k] = of.mean;
    scale[k] = of.squares;
    if (weights != nullptr) scale[k] *= load_value(weights[c * p.weight_step]);
    bias[k] = biases != nullptr ? load_value(biases[c * p.bias_step]) : C(0);
    if (++within == p.width && k + 1 < kCount) {
      within = 0;
      ++group;
    }
  }
  T* y = static_cast<T*>(p.y) + share.image * p.pixels * p.channels + share.channel;
  share.each(p, [&](int pixel, const Channels<T, kCount>& x) {
    Channels<T, kCount> out;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const C value = (load_value(x.values[k]) - mean[k]) * scale[k] + bias[k];
      out.values[k] = store_value<T>(activated<T>(p, value));
    }
    *reinterpret_cast<Channels<T, kCount>*>(y + static_cast<i64>(pixel) * p.channels) = out;
  });
}

// Block: a range of channels of a chunk of an image.
template <class T, int kCount>
RB_DEVICE void image_norm_apply(const ImageNormParams& p) {
  const Share<T, kCount> share(p);
  const auto* moments = static_cast<const GroupMoments<Compute<T>>*>(p.moments);
  write_normed<T, kCount>(p, share, moments + share.image * p.groups, 0);
}

// Block: whole groups of an image, at most kMostGroups.
template <class T, int kCount, int kWave>
RB_DEVICE void image_norm_whole(const ImageNormParams& p) {
  using C = Compute<T>;
  RB_SHARED RangeSums<T, kCount> sums;
  RB_SHARED GroupMoments<C> moments[kMostNormGroups];
  const Share<T, kCount> share(p);
  sums.take(p, share);
  const C pixels = static_cast<C>(p.pixels), by_pixels = static_cast<C>(p.by_chunk);
  const int lane = static_cast<int>(thread_x()) % kWave;
  for (int group = static_cast<int>(thread_x()) / kWave; group < share.width / p.width;
       group += kThreads / kWave) {
    const int at = group * p.width;
    C mean = 0, squares = 0;
    for (int i = lane; i < p.width; i += kWave) mean += sums.mean(at + i, by_pixels);
    mean = wave_sum<kWave>(mean) / static_cast<C>(p.width);
    for (int i = lane; i < p.width; i += kWave) {
      squares += sums.spread(at + i, by_pixels, pixels, mean);
    }
    squares = wave_sum<kWave>(squares);
    if (lane == 0) moments[group] = {mean, scale_of(p, squares)};
  }
  barrier();
  write_normed<T, kCount>(p, share, moments, share.channel0 / p.width);
}

#define RB_STEPS(name, T, kCount)                                                                 \
  RB_KERNEL(image_norm_##name##_sums, kThreads, ImageNormParams, (image_norm_sums<T, kCount>(p))) \
  RB_KERNEL(image_norm_##name##_apply, kThreads, ImageNormParams, (image_norm_apply<T, kCount>(p)))
#define RB_JOIN(lanes, wave, dtype, T)                                       \
  RB_KERNEL(image_norm_##dtype##_join_##wave, kJoinThreads, ImageNormParams, \
            (image_norm_join<T, lanes>(p)))
#define RB_WHOLE(lanes, wave, name, T, kCount)                           \
  RB_KERNEL(image_norm_##name##_whole_##wave, kThreads, ImageNormParams, \
            (image_norm_whole<T, kCount, lanes>(p)))
#define RB_ANY(dtype, T)      \
  RB_STEPS(dtype, T, 1)       \
  RB_WAVES(RB_JOIN, dtype, T) \
  RB_WAVES(RB_WHOLE, dtype, T, 1)
#define RB_PACKED(dtype, T)                    \
  RB_STEPS(dtype##_packed, T, Pack<T>::kCount) \
  RB_WAVES(RB_WHOLE, dtype##_packed, T, Pack<T>::kCount)
RB_EACH_FLOAT_TYPE(RB_ANY)
RB_EACH_FLOAT(RB_PACKED)

}  // namespace gpu
}  // namespace rbee
