#include "backends/gpu/ops/image_norm.h"

#include <algorithm>
#include <numeric>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/launch.h"
#include "backends/gpu/rows.h"
#include "backends/shared/image_params.h"

namespace rbee::gpu {
namespace {

constexpr int64_t kThreads = 384;        // as in kernels/image_norm.cu
constexpr int64_t kRounds = 2;           // least pixels that a thread takes one after another
constexpr int64_t kBlocksEach = 2;       // of a multiprocessor, which has room for both at once
constexpr int64_t kMostRuns = 64;        // read side by side of a pixel by one block
constexpr int64_t kFewestRuns = 4;       // the same, if the block can choose
constexpr int64_t kNumbersEach = 3;      // RangeSums there: of each channel of a thread
constexpr int64_t kMoreThanMoments = 8;  // times as many bytes of pixels as of moments, at least

// Channels that can be read 16 bytes at a time.
bool packed_vector(const View& values) {
  return !values || (values.stride(0) == 1 && aligned(values.data));
}

bool packed(const ImageGroupNormArgs& args) {
  if (args.x.dtype == DType::f64 || args.x.dtype == DType::f8e4m3) return false;
  return vector_rows(args.x) && vector_rows(args.y) && packed_vector(args.weight) &&
         packed_vector(args.bias);
}

// What a block shares when a thread reads `each` channels at a time, with sums in float.
int64_t shared_bytes(int64_t each) {
  constexpr int64_t kMoments = shared::kMostNormGroups * 2 * sizeof(float);
  return kThreads * each * kNumbersEach * static_cast<int64_t>(sizeof(float)) + kMoments;
}

struct Cut {
  bool whole;  // in one step
  int64_t part, range, ranges, chunk, chunks;
};

int64_t pieces(int64_t count, int64_t size) {
  return (count + size - 1) / size;
}

// The inputs of the cut.
struct Sizes {
  int64_t images, pixels, channels, width;  // width: channels of a group
  int64_t each, bytes, moment;              // channels read at a time; bytes of one, of a moment
  int64_t multiprocessors;
  int64_t part, unit;  // a range is whole units
};

// The most channels of a group, all if they can be read by one block, that divide it.
int64_t part_of(int64_t width, int64_t each) {
  const auto fits = [&](int64_t part) {
    return width % part == 0 && std::lcm(part, each) / each <= kThreads;
  };
  int64_t part = std::min(width, kThreads * each);
  while (!fits(part)) --part;
  return part;
}

Sizes sizes_of(const ImageGroupNormArgs& args, int64_t each, int64_t multiprocessors) {
  const int64_t channels = args.x.size(2), width = channels / args.groups;
  const int64_t part = part_of(width, each);
  return {.images = args.x.size(0),
          .pixels = args.x.size(1),
          .channels = channels,
          .width = width,
          .each = each,
          .bytes = info(args.x.dtype).block_bytes,
          .moment = args.x.dtype == DType::f64 ? 2 * 8 : 2 * 4,
          .multiprocessors = multiprocessors,
          .part = part,
          .unit = std::lcm(part, each)};
}

// One chunk of all pixels, and few channels a block.
Cut cut_whole(const Sizes& of, int64_t fewest) {
  const int64_t range = std::min(fewest * of.unit, of.channels);
  const int64_t side = kThreads / (range / of.each);
  return {.whole = of.part == of.width && pieces(of.pixels, side) <= shared::kNormHeld,
          .part = of.part,
          .range = range,
          .ranges = pieces(of.channels, range),
          .chunk = of.pixels,
          .chunks = 1};
}

// As many chunks as keep all multiprocessors busy.
Cut cut_ranges(const Sizes& of, int64_t range) {
  const int64_t ranges = pieces(of.channels, range), side = kThreads / (range / of.each);
  const int64_t wanted =
      std::max<int64_t>(kBlocksEach * of.multiprocessors / (of.images * ranges), 1);
  const int64_t chunk = std::max(pieces(of.pixels, wanted), std::min(side * kRounds, of.pixels));
  return {.whole = false,
          .part = of.part,
          .range = range,
          .ranges = ranges,
          .chunk = chunk,
          .chunks = pieces(of.pixels, chunk)};
}

// The fewer channels a block takes, the fewer groups it has to merge chunks of, and the fewer
// chunks these have.
Cut cut(const Sizes& of) {
  const int64_t units = of.channels / of.unit, runs = of.unit / of.each;
  const int64_t fewest = pieces(kFewestRuns, runs);
  if (const Cut out = cut_whole(of, fewest); out.whole) return out;
  const int64_t groups = std::max<int64_t>(of.unit / of.width, 1);
  const int64_t most = std::min(std::max<int64_t>(kMostRuns / runs, 1),
                                std::max<int64_t>(shared::kMostNormGroups / groups, 1));
  for (int64_t ranges = pieces(units, most);; ranges *= 2) {
    const int64_t each = pieces(units, ranges);
    const Cut out = cut_ranges(of, each * of.unit);
    const int64_t moments = out.range / out.part * out.chunks * of.moment;
    if (each <= fewest || moments * kMoreThanMoments <= out.chunk * out.range * of.bytes)
      return out;
  }
}

shared::ImageNormParams params_of(const ImageGroupNormArgs& args, const Cut& cut) {
  const View& x = args.x;
  const auto narrow = [](int64_t n) { return static_cast<int32_t>(n); };
  return {.x = x.data,
          .weight = args.weight.data,
          .bias = args.bias.data,
          .y = args.y.data,
          .chunk_moments = nullptr,
          .image_stride = x.stride(0),
          .pixel_stride = x.stride(1),
          .channel_stride = x.stride(2),
          .weight_step = args.weight.strides[0],
          .bias_step = args.bias.strides[0],
          .pixels = narrow(x.size(1)),
          .channels = narrow(x.size(2)),
          .width = narrow(x.size(2) / args.groups),
          .part = narrow(cut.part),
          .range = narrow(cut.range),
          .ranges = narrow(cut.ranges),
          .chunk = narrow(cut.chunk),
          .chunks = narrow(cut.chunks),
          .by_part = 1.0 / static_cast<double>(cut.part),
          .by_chunk = 1.0 / static_cast<double>(cut.chunk),
          .by_last = 1.0 / static_cast<double>(x.size(1) - (cut.chunks - 1) * cut.chunk),
          .eps = args.eps,
          .silu = args.activation == NormActivation::silu ? 1u : 0u};
}

const char* refuse(const ImageGroupNormArgs& args) {
  constexpr int64_t kMost = int64_t{1} << 30;
  if (args.x.size(1) >= kMost || args.x.size(2) >= kMost || args.x.size(0) >= kMost / 4096) {
    return "counts in 32 bits";
  }
  return nullptr;
}

void run(const ImageGroupNormArgs& args, Stream& stream) {
  if (args.x.numel() == 0) return;
  const DType dtype = args.x.dtype;
  const Properties& device = device_of(stream).properties();
  const int64_t together = 16 / info(dtype).block_bytes;
  const bool fast = packed(args) && shared_bytes(together) <= device.shared_per_block;
  const int64_t each = fast ? together : 1;
  const Sizes sizes = sizes_of(args, each, device.multiprocessors);
  const Cut pieces = cut(sizes);
  shared::ImageNormParams params = params_of(args, pieces);
  const int64_t blocks = sizes.images * pieces.chunks * pieces.ranges;
  const auto start = [&](const char* step) {
    launch(stream,
           {.op = "image_group_norm",
            .family = "image_norm",
            .kernel = KernelName("image_norm", dtype, fast ? "packed" : "")
                          .part(step)
                          .lanes(device.lane_count),
            .grid = {.x = static_cast<uint32_t>(blocks)},
            .threads = static_cast<uint32_t>(kThreads)},
           params);
  };
  if (pieces.whole) {
    start("whole");
    return;
  }
  const int64_t moments = sizes.images * pieces.chunks * (sizes.channels / pieces.part);
  const Scratch chunks(stream, static_cast<size_t>(moments * sizes.moment));
  params.chunk_moments = chunks.as<void>();
  start("sums");
  start("apply");
}

}  // namespace

const Impl<ImageGroupNormArgs> image_group_norm{"gpu", refuse, run};

}  // namespace rbee::gpu
