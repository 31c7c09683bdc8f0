#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backends/api/dispatch.h"
#include "backends/gpu/loop.h"
#include "backends/gpu/ops/elementwise.h"
#include "backends/shared/elementwise_params.h"

namespace rbee::gpu {
namespace {

void copy_loop(const char* op, Loop<2> loop, Stream& stream) {
  widen(loop, 2);
  const int64_t bytes = loop.operands[0].bytes;
  const int each = elements_per_thread(bytes);
  for_parts(loop, [&](const Loop<2>& part, int64_t) {
    launch_loop(stream, op, "move", sized("copy", bytes), each,
                shared::CopyParams{.x = part.operands[1].data,
                                   .y = part.operands[0].data,
                                   .space = strided(part, packs(part, each))});
  });
}

void run_copy(const CopyArgs& args, Stream& stream) {
  copy_loop("copy", loop_over<2>({&args.y, &args.x}), stream);
}

View matrix(View view, const Copy2dArgs& args, int64_t stride) {
  view.rank = 2;
  view.sizes[0] = args.rows;
  view.sizes[1] = args.cols;
  view.strides[0] = stride;
  view.strides[1] = 1;
  return view;
}

void run_copy2d(const Copy2dArgs& args, Stream& stream) {
  const View from = matrix(args.src, args, args.src_stride);
  const View to = matrix(args.dst, args, args.dst_stride);
  copy_loop("copy2d", loop_over<2>({&to, &from}), stream);
}

// Bits of the value as an element; conversion is the host's.
template <typename T>
uint64_t bits_of(double value) {
  T element{};
  if constexpr (std::is_same_v<T, f16>) {
    element = to_f16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, bf16>) {
    element = to_bf16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, f8e4m3>) {
    element = to_f8e4m3(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    element = static_cast<T>(value);
  } else {
    using Limits = std::numeric_limits<T>;
    constexpr double kEnd = static_cast<double>(uint64_t{1} << (Limits::digits - 1)) * 2;
    if (value >= kEnd) {
      element = Limits::max();
    } else if (value < static_cast<double>(Limits::min())) {
      element = Limits::min();
    } else if (!std::isnan(value)) {
      element = static_cast<T>(value);
    }
  }
  uint64_t bits = 0;
  std::memcpy(&bits, &element, sizeof element);
  return bits;
}

void run_fill(const FillArgs& args, Stream& stream) {
  uint64_t bits = 0;
  dispatch<uint8_t, uint32_t, int16_t, int32_t, int64_t, f16, bf16, float, double, f8e4m3>(
      "fill", args.y.dtype, [&]<typename T>() { bits = bits_of<T>(args.value); });
  const int64_t bytes = info(args.y.dtype).block_bytes;
  const int each = elements_per_thread(bytes);
  for_parts(loop_over<1>({&args.y}), [&](const Loop<1>& part, int64_t) {
    launch_loop(
        stream, "fill", "move", sized("fill", bytes), each,
        shared::FillParams{
            .y = part.operands[0].data, .bits = bits, .space = strided(part, packs(part, each))});
  });
}

void run_where(const WhereArgs& args, Stream& stream) {
  const int64_t bytes = info(args.y.dtype).block_bytes;
  const int each = elements_per_thread(bytes);
  const auto cond_bytes = static_cast<uint32_t>(info(args.cond.dtype).block_bytes);
  const auto loop = loop_over<4>({&args.y, &args.cond, &args.a, &args.b});
  for_parts(loop, [&](const Loop<4>& part, int64_t) {
    launch_loop(stream, "where", "move", sized("where", bytes), each,
                shared::WhereParams{.cond = part.operands[1].data,
                                    .a = part.operands[2].data,
                                    .b = part.operands[3].data,
                                    .y = part.operands[0].data,
                                    .cond_bytes = cond_bytes,
                                    .space = strided(part, packs(part, each))});
  });
}

}  // namespace

const Impl<CopyArgs> copy{"gpu", never_refuse, run_copy};
const Impl<Copy2dArgs> copy2d{"gpu", never_refuse, run_copy2d};
const Impl<FillArgs> fill{"gpu", never_refuse, run_fill};
const Impl<WhereArgs> where{"gpu", never_refuse, run_where};

}  // namespace rbee::gpu
