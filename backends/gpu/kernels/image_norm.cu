// y = act((x - mean) / sqrt(variance + eps) * weight + bias) over the groups of channels of an
// image with the channels last, in three steps: a block sums a chunk of an image's pixels for all
// channels, one joins the chunks of a group (Chan, Golub and LeVeque 1983), and the last writes the
// result. Sums are of differences from the image's first pixel, so that little cancels. Limited by
// memory.
#include "backends/gpu/portable.h"
#include "backends/shared/image_params.h"
#include "backends/shared/scalar.h"

namespace rbee {
namespace gpu {

constexpr int kThreads = 384;
constexpr int kJoinThreads = 64;

template <class T, int kCount>
struct Channels {
  Compute<T> values[kCount];
};

template <class T, int kCount>
RB_DEVICE Channels<T, kCount> load_channels(const T* from) {
  struct alignas(kCount > 1 ? 16 : sizeof(T)) Run {
    T values[kCount];
  };
  const Run run = *reinterpret_cast<const Run*>(from);
  Channels<T, kCount> out;
#pragma unroll
  for (int i = 0; i < kCount; ++i) out.values[i] = load_value(run.values[i]);
  return out;
}

template <class T, int kCount>
RB_DEVICE void store_channels(T* to, const Channels<T, kCount>& channels) {
  struct alignas(kCount > 1 ? 16 : sizeof(T)) Run {
    T values[kCount];
  };
  Run run;
#pragma unroll
  for (int i = 0; i < kCount; ++i) run.values[i] = store_value<T>(channels.values[i]);
  *reinterpret_cast<Run*>(to) = run;
}

// Which channels of which pixels of a chunk a thread takes: `side` pixels are read side by side.
// Channels that a block cannot take at once are taken one range after another.
template <class T, int kCount>
struct Share {
  i64 image;
  int first, end;  // pixels of the block
  int runs;        // of kCount channels, in a range
  int side, lane;

  RB_DEVICE explicit Share(const ImageNormParams& p) : image(block_x() / p.chunks) {
    const int chunk = static_cast<int>(block_x() % p.chunks);
    first = chunk * p.chunk;
    end = first + p.chunk < p.pixels ? first + p.chunk : p.pixels;
    runs = p.range / kCount;
    side = kThreads / runs;
    lane = static_cast<int>(thread_x()) / runs;
  }
  // The thread's channel in range `range`; not below p.channels where it has none.
  RB_DEVICE int channel(const ImageNormParams& p, int range) const {
    if (lane >= side) return p.channels;
    return range * p.range + (static_cast<int>(thread_x()) - lane * runs) * kCount;
  }
  RB_DEVICE const T* pixel(const ImageNormParams& p, int index, int channel) const {
    return static_cast<const T*>(p.x) + image * p.image_stride + index * p.pixel_stride +
           channel * p.channel_stride;
  }
};

template <class C>
struct ChannelSums {
  C sum, squares;
};

// The sums of one range of channels over the block's pixels, in `sums` by channel of the range.
template <class T, int kCount>
RB_DEVICE void sum_range(const ImageNormParams& p, const Share<T, kCount>& share, int range,
                         ChannelSums<Compute<T>>* sums) {
  using C = Compute<T>;
  const int channel = share.channel(p, range);
  ChannelSums<C> own[kCount] = {};
  if (channel < p.channels) {
    const auto pivot = load_channels<T, kCount>(share.pixel(p, 0, channel));
    for (int i = share.first + share.lane; i < share.end; i += share.side) {
      const auto x = load_channels<T, kCount>(share.pixel(p, i, channel));
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        const C apart = x.values[k] - pivot.values[k];
        own[k].sum += apart;
        own[k].squares += apart * apart;
      }
    }
  }
  // Pixels that were read side by side are joined, half of them with the other half.
  const int at = static_cast<int>(thread_x()) * kCount;
#pragma unroll
  for (int k = 0; k < kCount; ++k) sums[at + k] = own[k];
  for (int left = share.side; left > 1;) {
    const int half = (left + 1) / 2;
    barrier();
    if (share.lane + half < left) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        const ChannelSums<C> other = sums[at + half * share.runs * kCount + k];
        sums[at + k].sum += other.sum;
        sums[at + k].squares += other.squares;
      }
    }
    left = half;
  }
  barrier();
}

template <class C>
struct GroupMoments {
  C mean, squares;
};

// The moments of channels [channel0, channel0 + p.part) of the block's pixels; by_pixels and
// by_part are 1 / their counts.
template <class T, int kCount>
RB_DEVICE GroupMoments<Compute<T>> join_channels(const ImageNormParams& p,
                                                 const Share<T, kCount>& share, int channel0,
                                                 const ChannelSums<Compute<T>>* sums,
                                                 Compute<T> by_pixels, Compute<T> by_part) {
  using C = Compute<T>;
  const auto mean_of = [&](int i) {
    return load_value(*share.pixel(p, 0, channel0 + i)) + sums[i].sum * by_pixels;
  };
  GroupMoments<C> all = {};
  for (int i = 0; i < p.part; ++i) all.mean += mean_of(i);
  all.mean *= by_part;
  const C count = static_cast<C>(share.end - share.first);
  for (int i = 0; i < p.part; ++i) {
    const C apart = mean_of(i) - all.mean;
    all.squares += sums[i].squares - sums[i].sum * sums[i].sum * by_pixels + count * apart * apart;
  }
  return all;
}

// Block: a chunk of an image.
template <class T, int kCount>
RB_DEVICE void image_norm_sums(const ImageNormParams& p) {
  using C = Compute<T>;
  RB_SHARED ChannelSums<C> sums[kThreads * kCount];
  const Share<T, kCount> share(p);
  const bool whole = share.end - share.first == p.chunk;
  const C by_pixels = static_cast<C>(whole ? p.by_chunk : p.by_last);
  const C by_part = static_cast<C>(p.by_part);
  const int parts = p.channels / p.part;
  auto* out = static_cast<GroupMoments<C>*>(p.chunk_moments) + static_cast<i64>(block_x()) * parts;
  for (int first = 0; first < p.channels; first += p.range) {
    sum_range<T, kCount>(p, share, first / p.range, sums);
    for (int at = static_cast<int>(thread_x()) * p.part; at < p.range; at += kThreads * p.part) {
      if (first + at >= p.channels) break;
      out[(first + at) / p.part] =
          join_channels<T, kCount>(p, share, first + at, sums + at, by_pixels, by_part);
    }
    barrier();
  }
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
  const C scale = C(1) / sqrt(squares / all + static_cast<C>(p.eps));
  static_cast<GroupMoments<C>*>(p.moments)[block_x()] = {mean, scale};
}

// What one range of channels is normalised with.
template <class T, int kCount>
struct Norm {
  using C = Compute<T>;
  C mean[kCount], scale[kCount], bias[kCount];

  RB_DEVICE Norm(const ImageNormParams& p, i64 image, int channel) {
    const auto* moments = static_cast<const GroupMoments<C>*>(p.moments) + image * p.groups;
    const T* weights = static_cast<const T*>(p.weight);
    const T* biases = static_cast<const T*>(p.bias);
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const int c = channel + k;
      const GroupMoments<C> of = moments[c / p.width];
      mean[k] = of.mean;
      scale[k] = of.squares;
      if (weights != nullptr) scale[k] *= load_value(weights[c * p.weight_step]);
      bias[k] = biases != nullptr ? load_value(biases[c * p.bias_step]) : C(0);
    }
  }
};

// Block: a chunk of an image.
template <class T, int kCount>
RB_DEVICE void image_norm_apply(const ImageNormParams& p) {
  using C = Compute<T>;
  const Share<T, kCount> share(p);
  for (int range = 0; range * p.range < p.channels; ++range) {
    const int channel = share.channel(p, range);
    if (channel >= p.channels) continue;
    const Norm<T, kCount> norm(p, share.image, channel);
    for (int i = share.first + share.lane; i < share.end; i += share.side) {
      auto x = load_channels<T, kCount>(share.pixel(p, i, channel));
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        const C value = (x.values[k] - norm.mean[k]) * norm.scale[k] + norm.bias[k];
        x.values[k] = p.silu != 0 ? silu(value) : value;
      }
      store_channels<T, kCount>(
          static_cast<T*>(p.y) + (share.image * p.pixels + i) * p.channels + channel, x);
    }
  }
}

#define RB_STEPS(name, T, kCount)                                                                 \
  RB_KERNEL(image_norm_##name##_sums, kThreads, ImageNormParams, (image_norm_sums<T, kCount>(p))) \
  RB_KERNEL(image_norm_##name##_apply, kThreads, ImageNormParams, (image_norm_apply<T, kCount>(p)))
#define RB_JOIN(lanes, wave, dtype, T)                                       \
  RB_KERNEL(image_norm_##dtype##_join_##wave, kJoinThreads, ImageNormParams, \
            (image_norm_join<T, lanes>(p)))
#define RB_ANY(dtype, T) \
  RB_STEPS(dtype, T, 1)  \
  RB_WAVES(RB_JOIN, dtype, T)
#define RB_PACKED(dtype, T) RB_STEPS(dtype##_packed, T, Pack<T>::kCount)
RB_EACH_FLOAT_TYPE(RB_ANY)
RB_EACH_FLOAT(RB_PACKED)

}  // namespace gpu
}  // namespace rbee
