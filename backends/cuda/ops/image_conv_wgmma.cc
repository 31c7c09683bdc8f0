#include "backends/cuda/ops/image_conv_wgmma.h"

#include <algorithm>
#include <limits>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/image_conv.h"

namespace rbee::cuda {
namespace {

// As in kernels/image_conv_wgmma.cu: four stages of 128 bytes of each row, and room to align them.
constexpr int64_t kRows = 128;
constexpr int64_t kStepDepth = 64;
constexpr uint32_t kThreads = 256;
constexpr uint32_t shared_bytes(int64_t outs) {
  return static_cast<uint32_t>(4 * (kRows + outs) * 128 + 1024);
}

struct Tile {
  const char* name;
  int64_t outs;
};
constexpr Tile kTiles[] = {{"wide", 256}, {"middle", 160}, {"square", 128}};

// Steps of the depth that a block does at least where several share it, and about what its first
// and last ones cost; what a step costs besides its products, in outputs.
constexpr int64_t kFewestSteps = 8;
constexpr int64_t kEndSteps = 6;
constexpr int64_t kStepOuts = 64;

// A tile's size, and how many blocks share the depth.
struct Choice {
  Tile tile = kTiles[0];
  int64_t blocks = 0;  // of one split
  int64_t steps = 0;   // of a split
  int64_t splits = 1;
};

// All blocks in turn, one on a multiprocessor at a time, in outputs of one step of a block.
int64_t cost(const Choice& choice, int64_t multiprocessors) {
  const int64_t rounds = (choice.blocks * choice.splits + multiprocessors - 1) / multiprocessors;
  const int64_t joined = choice.splits > 1 ? kEndSteps : 0;
  return rounds * (choice.steps + kEndSteps + joined) * (choice.tile.outs + kStepOuts);
}

Choice choose(const shared::ImageConvParams& p, int64_t multiprocessors) {
  const int64_t steps = (p.depth + kStepDepth - 1) / kStepDepth;
  Choice best;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Tile& tile : kTiles) {
    Choice choice{.tile = tile, .blocks = 0, .steps = steps, .splits = 1};
    choice.blocks = (p.pixels + kRows - 1) / kRows * ((p.outs + tile.outs - 1) / tile.outs);
    // Partial sums are written in pairs.
    const int64_t most =
        p.outs % 2 == 0 ? std::min(multiprocessors / choice.blocks, steps / kFewestSteps) : 1;
    if (most > 1) {
      choice.steps = (steps + most - 1) / most;
      choice.splits = (steps + choice.steps - 1) / choice.steps;
    }
    const int64_t of_choice = cost(choice, multiprocessors);
    if (of_choice >= least) continue;
    least = of_choice;
    best = choice;
  }
  return best;
}

void run(const ImageConvArgs& args, Stream& stream) {
  if (args.y.numel() == 0) return;
  shared::ImageConvParams params = gpu::image_conv_params(args);
  const Choice choice = choose(params, gpu::device_of(stream).properties().multiprocessors);
  const int64_t results = args.y.numel();
  const bool shares = choice.splits > 1;
  const gpu::Scratch partials(
      stream, shares ? static_cast<size_t>(choice.splits * results) * sizeof(float) : 0);
  if (shares) {
    params.partials = partials.as<float>();
    params.splits = static_cast<int32_t>(choice.splits);
    params.split_depth = static_cast<int32_t>(choice.steps * kStepDepth);
  }
  gpu::launch(stream,
              {.op = "image_conv",
               .family = "image_conv_wgmma",
               .kernel = gpu::KernelName("image_conv", args.x.dtype, choice.tile.name),
               .grid = {.x = static_cast<uint32_t>(choice.blocks),
                        .y = static_cast<uint32_t>(choice.splits)},
               .threads = kThreads,
               .shared_bytes = shared_bytes(choice.tile.outs)},
              params);
  if (!shares) return;
  gpu::launch(stream,
              {.op = "image_conv",
               .family = "image_conv_wgmma",
               .kernel = gpu::KernelName("image_conv", args.x.dtype, "join"),
               .grid = {.x = gpu::blocks_for(results / 2, kThreads)},
               .threads = kThreads},
              params);
}

}  // namespace

const Impl<ImageConvArgs> image_conv_wgmma{"wgmma", gpu::refuse_tensor_image_conv, run};

}  // namespace rbee::cuda
