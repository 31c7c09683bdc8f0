#include "backends/gpu/ops/random.h"

#include <algorithm>

#include "backends/gpu/launch.h"
#include "backends/shared/random_params.h"

namespace rbee::gpu {
namespace {

void run_random(const RandomArgs& args, Stream& stream) {
  constexpr uint32_t kThreads = 256;       // kTileThreads in tile.h
  constexpr uint32_t kMostBlocks = 65536;  // threads walk on from there
  const int64_t count = args.y.numel();
  const int64_t blocks = (count + kThreads - 1) / kThreads;
  const bool uniform = args.kind == RandomKind::uniform;
  launch(stream,
         {.op = "random",
          .family = "random",
          .kernel = KernelName(uniform ? "random_uniform" : "random_normal", args.y.dtype),
          .grid = {.x = static_cast<uint32_t>(std::min<int64_t>(blocks, kMostBlocks))},
          .threads = kThreads},
         shared::RandomParams{.y = args.y.data,
                              .count = count,
                              .seed = args.seed,
                              .offset = args.offset,
                              .a = args.a,
                              .b = args.b});
}

}  // namespace

const Impl<RandomArgs> random{"gpu", never_refuse, run_random};

}  // namespace rbee::gpu
