#include "backends/cuda/ops/linear_few_tma.h"

#include "backends/cuda/cuda_driver.h"
#include "backends/cuda/ops/tensor_lines.h"
#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/linear_few_rows.h"
#include "backends/shared/tensor_map_params.h"

namespace rbee::cuda {
namespace {

constexpr uint32_t kAlignment = 1024;  // alignment of the engine's copies

void start(const gpu::Launch& launch, const shared::FewRowsParams& params, DType x, int64_t rows,
           Stream& stream) {
  auto& driver = static_cast<CudaDriver&>(gpu::device_of(stream).driver());
  const auto map = [&](const void* data, int64_t all, int64_t count) {
    const TensorLines lines{.dtype = x,
                            .data = data,
                            .lines = all,
                            .depth = params.in,
                            .bytes = 2,
                            .pitch = 2 * int64_t{params.in}};
    return driver.tensor_map(lines.map(count));
  };
  shared::FewTensorParams with_maps{};
  with_maps.few = params;
  with_maps.x = map(params.x, params.rows, rows);
  for (int32_t i = 0; i < params.part_count; ++i) {
    const shared::MatvecPart& part = params.parts[i];
    with_maps.weights[i] = map(part.weight, part.outs, shared::kFewTensorOuts);
  }
  const int eights = static_cast<int>(rows) / 8;
  gpu::Launch with_ring = launch;
  with_ring.shared_bytes = static_cast<uint32_t>(
      shared::few_tensor_stages(eights) * shared::few_tensor_stage(eights) + kAlignment);
  gpu::launch(stream, with_ring, with_maps);
}

// A multiprocessor holds two blocks; one keeps enough loads under way for its share of the memory.
constexpr gpu::FewRowsKernels kKernels{.prefix = "gemm_few",
                                       .families = {},
                                       .plain = "gemm_few_tma",
                                       .outs = shared::kFewTensorOuts,
                                       .threads = shared::kFewTensorThreads,
                                       .blocks = 1,
                                       .ring = false,
                                       .start = start};

void run(const LinearArgs& args, Stream& stream) {
  gpu::run_few_plain(kKernels, args, stream);
}
// With more rows cuBLASLt's products save more time than a separate norm kernel costs.
const char* refuse_norm(const LinearNormArgs& args) {
  constexpr int64_t kMostRows = 32;
  if (args.x.size(0) > kMostRows) return "takes 9 to 32 rows";
  return gpu::refuse_few_plain_norm(args);
}
void run_norm(const LinearNormArgs& args, Stream& stream) {
  gpu::run_few_plain_norm(kKernels, args, stream);
}

}  // namespace

const Impl<LinearArgs> linear_few_tma{"tma_few", gpu::refuse_few_plain, run};
const Impl<LinearNormArgs> linear_norm_few_tma{"tma_few", refuse_norm, run_norm};

}  // namespace rbee::cuda
