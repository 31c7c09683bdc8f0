#include "backends/gpu/ops/decode.h"

#include <algorithm>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/launch.h"
#include "backends/gpu/rows.h"
#include "backends/shared/decode_params.h"

namespace rbee::gpu {
namespace {

constexpr uint32_t kThreads = 256;   // as in kernels/decode.cu
constexpr int64_t kOneBlock = 4096;  // integers that one block writes besides its other work
constexpr int64_t kShownEach = 8;    // by a thread of more blocks
static_assert(shared::kMostStages == kDrawStages && shared::kMostBans == kDrawBans &&
              shared::kFront == kDrawFront);
static_assert(kMaxTopK <= 4 * kThreads);

void run_draw_rows(const DrawArgs& args, Stream& stream) {
  const uint32_t lanes = device_of(stream).properties().lane_count;
  launch(stream,
         {.op = "draw",
          .family = "decode",
          .kernel = KernelName("draw").lanes(lanes),
          .grid = {.x = static_cast<uint32_t>(args.values.size(0))},
          .threads = kThreads},
         shared::DrawParams{.x = args.x.as<const float>(),
                            .values = args.values.as<const float>(),
                            .ids = args.ids.as<const int32_t>(),
                            .sum = args.sum.as<const float>(),
                            .stages = args.stages.as<const int32_t>(),
                            .amounts = args.amounts.as<const float>(),
                            .banned = args.banned.as<const int32_t>(),
                            .numbers = args.numbers.as<const float>(),
                            .turn = args.turn.as<const int32_t>(),
                            .drawn = args.drawn.as<int32_t>(),
                            .x_row = args.x.stride(0),
                            .n = static_cast<uint32_t>(args.x.size(1)),
                            .k = static_cast<uint32_t>(args.values.size(1)),
                            .columns = static_cast<uint32_t>(args.numbers.size(1))});
}

void run_draw(const DrawArgs& args, Stream& stream) {
  using Args = DrawArgs;
  for_row_parts(args,
                {&Args::x, &Args::values, &Args::ids, &Args::sum, &Args::stages, &Args::amounts,
                 &Args::banned, &Args::numbers, &Args::drawn},
                kMostRows, [&](const Args& part) { run_draw_rows(part, stream); });
}

void run_next_step(const NextStepArgs& args, Stream& stream) {
  const int64_t count = args.found.size(0);
  const auto start = [&](uint32_t blocks, const shared::NextStepParams& params) {
    launch(stream,
           {.op = "next_step",
            .family = "decode",
            .kernel = KernelName("next_step"),
            .grid = {.x = blocks},
            .threads = kThreads},
           params);
  };
  shared::NextStepParams params{.positions = args.positions.as<int32_t>(),
                                .slots = args.slots.as<int32_t>(),
                                .lengths = args.lengths.as<int32_t>(),
                                .block_table = args.block_table.as<const int32_t>(),
                                .turn = args.turn.as<int32_t>(),
                                .found = args.found.as<const int32_t>(),
                                .shown = args.shown.as<int32_t>(),
                                .rows = static_cast<uint32_t>(args.positions.size(0)),
                                .width = static_cast<uint32_t>(args.block_table.size(1)),
                                .block_size = static_cast<uint32_t>(args.block_size),
                                .count = static_cast<uint32_t>(count),
                                .alone = 1};
  if (count > kOneBlock) {
    // The turn may grow only after every block has read it.
    shared::NextStepParams shows = params;
    shows.alone = 0;
    start(blocks_for(count, kThreads * kShownEach), shows);
    params.count = 0;
  }
  start(1, params);
}

}  // namespace

const Impl<DrawArgs> draw{"gpu", never_refuse, run_draw};
const Impl<NextStepArgs> next_step{"gpu", never_refuse, run_next_step};

}  // namespace rbee::gpu
