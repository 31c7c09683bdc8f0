#pragma once

#include "backends/gpu/gpu_device.h"
#include "backends/shared/matvec_params.h"

namespace rbee::gpu {

// x, (rows, in), as int8 in memory of a call, for kernels/matvec_quant.h.
class QuantizedInput {
 public:
  QuantizedInput(const char* op, const View& x, Stream& stream)
      : lanes_(device_of(stream).properties().lane_count),
        row_bytes_((x.size(1) + 32 * lanes_ - 1) / (32 * lanes_) * (32 * lanes_)),
        groups_(x.numel() / 32),
        scratch_(stream, static_cast<size_t>(x.size(0) * row_bytes_) +
                             static_cast<size_t>(groups_) * sizeof(shared::XGroup)) {
    KernelName kernel("quantize_x", x.dtype);
    launch(stream,
           {.op = op,
            .family = "quantize_x",
            .kernel = kernel.lanes(lanes_),
            .grid = {.x = blocks_for(groups_ * 8, shared::kMatvecThreads)},
            .threads = shared::kMatvecThreads,
            .writes = Writes::results},
           shared::QuantizeXParams{
               .x = x.data, .to = view(x.size(0)), .rows = x.size(0), .in = x.size(1)});
  }

  shared::QuantizedX view(int64_t rows) const {
    auto* quants = scratch_.as<int8_t>();
    return {.quants = quants, .groups = quants + rows * row_bytes_, .row_bytes = row_bytes_};
  }

 private:
  int lanes_;
  int64_t row_bytes_;
  int64_t groups_;
  Scratch scratch_;
};

}  // namespace rbee::gpu
