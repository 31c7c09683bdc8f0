#include "backends/gpu/ops/indexing.h"

#include <algorithm>

#include "backends/gpu/loop.h"
#include "backends/shared/indexing_params.h"

namespace rbee::gpu {
namespace {

// With this many lines, one thread for each keeps the device busy.
constexpr int64_t kManyLines = 16384;
// Shorter lines are not worth a block.
constexpr int64_t kShortLine = 32;

uint32_t id_type(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return 0;
    case DType::u32:
      return 1;
    case DType::i16:
      return 2;
    case DType::i32:
      return 3;
    default:
      return 4;
  }
}

// The view with `axis` fixed: an index along it adds nothing to the offset.
View fixed(View view, int axis) {
  view.strides[axis] = 0;
  return view;
}

View with_sizes_of(View view, const View& like) {
  std::copy_n(like.sizes, kMaxRank, view.sizes);
  return view;
}

// ids (n) with the sizes of `like`, the same for every index except the one along `axis`.
View spread(const View& ids, const View& like, int axis) {
  View view = like;
  view.data = ids.data;
  view.dtype = ids.dtype;
  std::fill_n(view.strides, kMaxRank, 0);
  view.strides[axis] = ids.strides[0];
  return view;
}

void run_gather(const char* op, const GatherArgs& args, Stream& stream) {
  const View x = fixed(args.x, args.axis);
  Loop<3> loop = loop_over<3>({&args.y, &x, &args.ids});
  const int64_t step = args.x.strides[args.axis];
  const int64_t times = widen(loop, 2, {step});
  const int64_t bytes = loop.operands[0].bytes;
  for_parts(loop, [&](const Loop<3>& part, int64_t) {
    launch_loop(stream, op, "indexing", sized("gather", bytes), elements_per_thread(bytes),
                shared::GatherParams{.x = part.operands[1].data,
                                     .ids = part.operands[2].data,
                                     .y = part.operands[0].data,
                                     .id_type = id_type(args.ids.dtype),
                                     .step = step / times,
                                     .space = strided(part, false)});
  });
}

void run_scatter(const char* op, const ScatterArgs& args, Stream& stream) {
  const int axis = args.axis;
  const View y = with_sizes_of(args.y, args.src);
  Loop<3> loop = loop_over<3>({&y, &args.src, &args.ids}, 1u << axis);
  const int64_t y_step = args.y.strides[axis], src_step = args.src.strides[axis];
  const int64_t length = args.src.sizes[axis];
  if (length == 0) return;
  const int64_t times = args.add ? 1 : widen(loop, 2, {y_step, src_step});
  const bool lines = loop.count() >= kManyLines || length < kShortLine;
  KernelName kernel =
      args.add ? KernelName("scatter_add", args.y.dtype) : sized("scatter", loop.operands[0].bytes);
  kernel.part(lines ? "lines" : "line");
  for_parts(loop, [&](const Loop<3>& part, int64_t) {
    launch(stream,
           {.op = op,
            .family = "indexing",
            .kernel = kernel,
            .grid = {.x = blocks_for(part.count(), lines ? kLoopThreads : 1)},
            .threads = kLoopThreads},
           shared::ScatterParams{.src = part.operands[1].data,
                                 .ids = part.operands[2].data,
                                 .y = part.operands[0].data,
                                 .id_type = id_type(args.ids.dtype),
                                 .length = length,
                                 .y_step = y_step / times,
                                 .src_step = src_step / times,
                                 .ids_step = args.ids.strides[axis],
                                 .lines = strided(part, false)});
  });
}

void gather_args(const GatherArgs& args, Stream& stream) {
  run_gather("gather", args, stream);
}

void scatter_args(const ScatterArgs& args, Stream& stream) {
  run_scatter(args.add ? "scatter_add" : "scatter", args, stream);
}

void index_select_args(const IndexSelectArgs& args, Stream& stream) {
  run_gather("index_select", {args.x, spread(args.ids, args.y, args.axis), args.y, args.axis},
             stream);
}

void index_add_args(const IndexAddArgs& args, Stream& stream) {
  run_scatter("index_add",
              {spread(args.ids, args.src, args.axis), args.src, args.y, args.axis, true}, stream);
}

}  // namespace

const Impl<GatherArgs> gather{"gpu", never_refuse, gather_args};
const Impl<ScatterArgs> scatter{"gpu", never_refuse, scatter_args};
const Impl<IndexSelectArgs> index_select{"gpu", never_refuse, index_select_args};
const Impl<IndexAddArgs> index_add{"gpu", never_refuse, index_add_args};

}  // namespace rbee::gpu
