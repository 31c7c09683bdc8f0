#include "backends/gpu/ops/reduce.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/loop.h"
#include "backends/gpu/rows.h"
#include "backends/shared/reduce_params.h"

namespace rbee::gpu {
namespace {

constexpr int64_t kMaxSlices = 65535;   // of a grid's second axis
constexpr int64_t kMaxStateBytes = 16;  // of the kernels' states

// Kernels count places in 32 bits; the last one means none. Places that are not results may
// repeat.
constexpr uint64_t kAllPlaces = 0xffffffff;
constexpr uint64_t kLowPlaces = 0x7fffffff;

// A part of the reduced axes, and how threads share its work.
struct Part {
  Loop<1> loop;
  int64_t first = 0;   // place of its first element
  uint32_t lanes = 1;  // see ReduceParams
  uint32_t apart = 1;
  uint32_t slice = 1;
  int64_t slices = 1;
};

// Neighbouring threads read neighbouring elements: along the reduced axes, or along the kept ones.
Part plan_part(const Loop<2>& kept, const Loop<1>& reduced, int64_t first, int multiprocessors) {
  Part part{.loop = reduced, .first = first};
  const int64_t count = reduced.count();
  const bool along_kept = kept.rank > 0 && reduced.rank > 0 &&
                          kept.operands[1].strides[0] < reduced.operands[0].strides[0];
  if (along_kept) {
    part.lanes = count >= 32 ? 8 : 1;
    part.apart = kLoopThreads / part.lanes;
  } else {
    const auto wanted = static_cast<uint64_t>(std::max<int64_t>(count / 4, 1));
    part.lanes = static_cast<uint32_t>(std::min<uint64_t>(std::bit_ceil(wanted), kLoopThreads));
  }
  const int64_t blocks = blocks_for(kept.count(), kLoopThreads / part.lanes);
  const int64_t useful = count / (int64_t{part.lanes} * 16);
  const int64_t missing = int64_t{multiprocessors} * 8 / blocks;
  const int64_t slices = std::clamp<int64_t>(std::min(useful, missing), 1, kMaxSlices);
  part.slice = static_cast<uint32_t>(std::max<int64_t>((count + slices - 1) / slices, 1));
  part.slices = std::max<int64_t>((count + part.slice - 1) / part.slice, 1);
  return part;
}

std::vector<Part> plan(const Loop<2>& kept, const Loop<1>& reduced, int multiprocessors) {
  std::vector<Part> parts;
  const auto add = [&](const Loop<1>& loop, int64_t first) {
    parts.push_back(plan_part(kept, loop, first, multiprocessors));
  };
  // A sum of nothing is 0.
  if (reduced.count() == 0) {
    add(reduced, 0);
  } else {
    for_parts(reduced, add);
  }
  return parts;
}

// `from`: bytes from x's beginning to the outputs' first elements.
void launch_pass(const ReduceArgs& args, const Loop<2>& kept, const Part& part, int64_t from,
                 void* partial, int64_t first_slice, Stream& stream) {
  const bool sum = args.op == ReduceOp::sum;
  const bool finds_index = args.op == ReduceOp::argmin || args.op == ReduceOp::argmax;
  launch(stream,
         {.op = "reduce",
          .family = "reduce",
          .kernel = KernelName(sum ? "reduce_sum" : "reduce_find", args.x.dtype),
          .grid = {.x = blocks_for(kept.count(), kLoopThreads / part.lanes),
                   .y = static_cast<uint32_t>(part.slices)},
          .threads = kLoopThreads},
         shared::ReduceParams{
             .x = part.loop.operands[0].data + from,
             .y = kept.operands[0].data,
             .partial = partial,
             .first = static_cast<uint64_t>(part.first) & (finds_index ? kAllPlaces : kLowPlaces),
             .op = static_cast<uint32_t>(args.op),
             .lanes = part.lanes,
             .apart = part.apart,
             .slice = part.slice,
             .first_slice = static_cast<uint32_t>(first_slice),
             .kept = strided(kept, false),
             .reduced = strided(part.loop, false)});
}

void launch_finish(const ReduceArgs& args, const Loop<2>& kept, const void* partial, int64_t slices,
                   Stream& stream) {
  Loop<1> y;
  y.rank = kept.rank;
  std::copy_n(kept.sizes, kept.rank, y.sizes);
  std::copy_n(kept.operands[0].strides, kept.rank, y.operands[0].strides);
  const bool sum = args.op == ReduceOp::sum;
  const auto wanted = std::bit_ceil(static_cast<uint64_t>(slices));
  const auto lanes = static_cast<uint32_t>(std::min<uint64_t>(wanted, kLoopThreads));
  launch(stream,
         {.op = "reduce",
          .family = "reduce",
          .kernel = KernelName(sum ? "reduce_sum_finish" : "reduce_find_finish", args.x.dtype),
          .grid = {.x = blocks_for(kept.count(), kLoopThreads / lanes)},
          .threads = kLoopThreads},
         shared::ReduceFinishParams{.partial = partial,
                                    .y = kept.operands[0].data,
                                    .op = static_cast<uint32_t>(args.op),
                                    .lanes = lanes,
                                    .slices = static_cast<uint32_t>(slices),
                                    .kept = strided(y, false)});
}

// The outputs of `kept`.
void run_kept(const ReduceArgs& args, const Loop<2>& kept, const Loop<1>& reduced, Stream& stream) {
  const int64_t from = kept.operands[1].data - args.x.as<std::byte>();
  const std::vector<Part> parts =
      plan(kept, reduced, device_of(stream).properties().multiprocessors);
  int64_t slices = 0;
  for (const Part& part : parts) slices += part.slices;
  if (slices == 1) return launch_pass(args, kept, parts[0], from, nullptr, 0, stream);
  const Scratch partial(stream, static_cast<size_t>(slices * kept.count() * kMaxStateBytes));
  int64_t first_slice = 0;
  for (const Part& part : parts) {
    launch_pass(args, kept, part, from, partial.as<void>(), first_slice, stream);
    first_slice += part.slices;
  }
  launch_finish(args, kept, partial.as<void>(), slices, stream);
}

void run_reduce(const ReduceArgs& args, Stream& stream) {
  const uint32_t all = (1u << args.x.rank) - 1;
  const Loop<1> reduced = loop_over<1>({&args.x}, all & ~args.axes);
  const auto run = [&](const Loop<2>& kept, int64_t) { run_kept(args, kept, reduced, stream); };
  for_parts(loop_over<2>({&args.y, &args.x}, args.axes), run, kMostRows);
}

}  // namespace

const Impl<ReduceArgs> reduce{"gpu", never_refuse, run_reduce};

}  // namespace rbee::gpu
