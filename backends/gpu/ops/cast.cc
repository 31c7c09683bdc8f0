#include "backends/gpu/loop.h"
#include "backends/gpu/ops/elementwise.h"
#include "backends/gpu/ops/float_number.h"
#include "backends/shared/elementwise_params.h"

namespace rbee::gpu {
namespace {

// Row-major order is the order of x's blocks: axes must keep it.
Loop<1> rows_in_order(const View& y) {
  Loop<1> loop;
  loop.operands[0].data = y.as<std::byte>();
  loop.operands[0].bytes = info(y.dtype).block_bytes;
  for (int axis = y.rank - 1; axis >= 0; --axis) {
    if (y.sizes[axis] == 1) continue;
    const int64_t strides[1] = {y.strides[axis]};
    if (loop.rank > 0 && detail::joins(loop, strides)) {
      loop.sizes[loop.rank - 1] *= y.sizes[axis];
    } else {
      loop.push_axis(y.sizes[axis], strides);
    }
  }
  return loop;
}

// Rows are whole blocks, so that parts and runs of 8 begin within a group of a block.
void run_dequantize(const CastArgs& args, Stream& stream) {
  constexpr int kRun = 8;
  const KernelName kernel("dequantize", args.x.dtype);
  for_parts(rows_in_order(args.y), [&](const Loop<1>& part, int64_t first) {
    const bool packed = packs(part, kRun);
    launch_loop(stream, "cast", "dequantize", kernel, kRun,
                shared::DequantizeParams{.x = args.x.data,
                                         .y = part.operands[0].data,
                                         .first = static_cast<uint64_t>(first),
                                         .to = float_number(args.y.dtype),
                                         .space = strided(part, packed)});
  });
}

void run_cast(const CastArgs& args, Stream& stream) {
  if (is_quantized(args.x.dtype)) return run_dequantize(args, stream);
  constexpr int kEach = 4;
  const KernelName kernel("cast", args.x.dtype, name(args.y.dtype));
  for_parts(loop_over<2>({&args.y, &args.x}), [&](const Loop<2>& part, int64_t) {
    launch_loop(stream, "cast", "cast", kernel, kEach,
                shared::CopyParams{.x = part.operands[1].data,
                                   .y = part.operands[0].data,
                                   .space = strided(part, packs(part, kEach))});
  });
}

const char* refuse_cast(const CastArgs& args) {
  return is_quantized(args.y.dtype) ? "does not quantise" : nullptr;
}

}  // namespace

const Impl<CastArgs> cast{"gpu", refuse_cast, run_cast};

}  // namespace rbee::gpu
