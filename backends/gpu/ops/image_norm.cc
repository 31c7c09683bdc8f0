#include "backends/gpu/ops/image_norm.h"

#include <algorithm>
#include <numeric>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/launch.h"
#include "backends/gpu/rows.h"
#include "backends/shared/image_params.h"

namespace rbee::gpu {
namespace {

// As in kernels/image_norm.cu.
constexpr int64_t kThreads = 384;
constexpr uint32_t kJoinThreads = 64;

constexpr int64_t kMostPart = 16;      // what one thread joins in a while
constexpr int64_t kRounds = 4;         // pixels that a thread takes at least, one after another
constexpr int64_t kBlocksEach = 4;     // of a multiprocessor, so that all are busy to the end
constexpr int64_t kMostRuns = 64;      // read side by side of a pixel by one block
constexpr int64_t kFewestRuns = 4;     // the same, where that is for the block to choose
constexpr int64_t kMostPixels = 1024;  // of an image that one step serves well

// Pixels that can be read 16 bytes at a time.
bool packed(const ImageGroupNormArgs& args) {
  if (args.x.dtype == DType::f64 || args.x.dtype == DType::f8e4m3) return false;
  return vector_rows(args.x) && vector_rows(args.y);
}

// The largest divisor of a group's channels that one thread joins.
int64_t part_of(int64_t width) {
  for (int64_t part = std::min(width, kMostPart); part > 1; --part) {
    if (width % part == 0) return part;
  }
  return 1;
}

struct Cut {
  bool whole;  // in one step
  int64_t part, range, ranges, chunk, chunks;
};

int64_t pieces(int64_t count, int64_t size) {
  return (count + size - 1) / size;
}

// Ranges of whole groups, all pixels one chunk; a range of 0 channels where that does not serve.
Cut cut_whole(const ImageGroupNormArgs& args, int64_t each) {
  const int64_t pixels = args.x.size(1), channels = args.x.size(2);
  const int64_t width = channels / args.groups, unit = std::lcm(width, each);
  const int64_t range = std::min(pieces(kFewestRuns * each, unit) * unit, channels);
  const bool fits = range / each <= kThreads && range / width <= shared::kMostNormGroups;
  if (pixels > kMostPixels || !fits) return {};
  return {.whole = true,
          .part = width,
          .range = range,
          .ranges = pieces(channels, range),
          .chunk = pixels,
          .chunks = 1};
}

// `each`: channels that a thread reads at a time.
Cut cut(const ImageGroupNormArgs& args, int64_t each, int64_t multiprocessors) {
  Cut out = cut_whole(args, each);
  if (out.whole) return out;
  const int64_t pixels = args.x.size(1), channels = args.x.size(2);
  out.part = part_of(channels / args.groups);
  const int64_t unit = std::lcm(out.part, each);
  out.range = std::min(std::max<int64_t>(kMostRuns * each / unit, 1) * unit, channels);
  out.ranges = pieces(channels, out.range);
  const int64_t side = kThreads / (out.range / each);  // pixels read side by side
  const int64_t wanted =
      std::max<int64_t>(kBlocksEach * multiprocessors / (args.x.size(0) * out.ranges), 1);
  out.chunk = std::max(pieces(pixels, wanted), std::min(side * kRounds, pixels));
  out.chunks = pieces(pixels, out.chunk);
  return out;
}

shared::ImageNormParams params_of(const ImageGroupNormArgs& args, const Cut& cut) {
  const View& x = args.x;
  const auto narrow = [](int64_t n) { return static_cast<int32_t>(n); };
  return {.x = x.data,
          .weight = args.weight.data,
          .bias = args.bias.data,
          .y = args.y.data,
          .chunk_moments = nullptr,
          .moments = nullptr,
          .image_stride = x.stride(0),
          .pixel_stride = x.stride(1),
          .channel_stride = x.stride(2),
          .weight_step = args.weight.strides[0],
          .bias_step = args.bias.strides[0],
          .pixels = narrow(x.size(1)),
          .channels = narrow(x.size(2)),
          .groups = args.groups,
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
  const bool fast = packed(args);
  const int64_t each = fast ? 16 / info(dtype).block_bytes : 1;
  const Cut pieces = cut(args, each, device.multiprocessors);
  shared::ImageNormParams params = params_of(args, pieces);
  const int64_t images = args.x.size(0), blocks = images * pieces.chunks * pieces.ranges;
  const auto start = [&](const KernelName& kernel, int64_t count, int64_t threads) {
    launch(stream,
           {.op = "image_group_norm",
            .family = "image_norm",
            .kernel = kernel,
            .grid = {.x = static_cast<uint32_t>(count)},
            .threads = static_cast<uint32_t>(threads)},
           params);
  };
  const char* variant = fast ? "packed" : "";
  if (pieces.whole) {
    start(KernelName("image_norm", dtype, variant).part("whole").lanes(device.lane_count), blocks,
          kThreads);
    return;
  }
  const size_t moment = 2 * (dtype == DType::f64 ? sizeof(double) : sizeof(float));
  const int64_t parts = args.x.size(2) / pieces.part;
  const Scratch chunks(stream, static_cast<size_t>(images * pieces.chunks * parts) * moment);
  const Scratch groups(stream, static_cast<size_t>(images * args.groups) * moment);
  params.chunk_moments = chunks.as<void>();
  params.moments = groups.as<void>();
  start(KernelName("image_norm", dtype, variant).part("sums"), blocks, kThreads);
  start(KernelName("image_norm", dtype).part("join").lanes(device.lane_count), images * args.groups,
        kJoinThreads);
  start(KernelName("image_norm", dtype, variant).part("apply"), blocks, kThreads);
}

}  // namespace

const Impl<ImageGroupNormArgs> image_group_norm{"gpu", refuse, run};

}  // namespace rbee::gpu
