#include "backends/cuda/cublaslt.h"

#include "backends/gpu/ops/lt_products.h"

namespace rbee::cuda {
namespace {

gpu::LtLibrary& library() {
  // Never destroyed: at the end of a program the driver may be gone before us.
  static auto* const opened = new gpu::LtLibrary(kCublasLtVendor);
  return *opened;
}

const char* refuse_linear(const LinearArgs& args) {
  return gpu::refuse_lt_linear(library(), args);
}
void run_linear(const LinearArgs& args, Stream& stream) {
  gpu::run_lt_linear(library(), args, stream);
}
const char* refuse_fused(const FusedLinearArgs& args) {
  return gpu::refuse_lt_fused_linear(library(), args);
}
void run_fused(const FusedLinearArgs& args, Stream& stream) {
  gpu::run_lt_fused_linear(library(), args, stream);
}
const char* refuse_matmul(const MatmulArgs& args) {
  return gpu::refuse_lt_matmul(library(), args);
}
void run_matmul(const MatmulArgs& args, Stream& stream) {
  gpu::run_lt_matmul(library(), args, stream);
}

}  // namespace

const gpu::LtVendor kCublasLtVendor{.name = "cuBLASLt",
                                    .prefix = "cublasLt",
                                    .override_variable = "RBEE_CUBLASLT_LIBRARY",
                                    .files = {"libcublasLt.so.13", "libcublasLt.so.12"},
                                    .numbers = gpu::kCublasLtNumbers};

const Impl<LinearArgs> linear_cublaslt{"cublaslt", refuse_linear, run_linear};
const Impl<FusedLinearArgs> fused_linear_cublaslt{"cublaslt", refuse_fused, run_fused};
const Impl<MatmulArgs> matmul_cublaslt{"cublaslt", refuse_matmul, run_matmul};

}  // namespace rbee::cuda
