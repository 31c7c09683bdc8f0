#include "backends/cuda/cublaslt.h"

#include "backends/gpu/ops/lt_products.h"

namespace rbee::cuda {

gpu::LtLibrary& cublaslt_library() {
  // Never destroyed: at the end of a program the driver may be gone first.
  static auto* const opened = new gpu::LtLibrary(kCublasLtVendor);
  return *opened;
}

namespace {

const char* refuse_linear(const LinearArgs& args) {
  return gpu::refuse_lt_linear(cublaslt_library(), args);
}
const char* refuse_linear_on(const LinearArgs& args, Stream& stream) {
  return gpu::refuse_lt_linear_on(cublaslt_library(), args, stream);
}
void run_linear(const LinearArgs& args, Stream& stream) {
  gpu::run_lt_linear(cublaslt_library(), args, stream);
}
const char* refuse_fused(const FusedLinearArgs& args) {
  return gpu::refuse_lt_fused_linear(cublaslt_library(), args);
}
const char* refuse_fused_on(const FusedLinearArgs& args, Stream& stream) {
  return gpu::refuse_lt_fused_linear_on(cublaslt_library(), args, stream);
}
void run_fused(const FusedLinearArgs& args, Stream& stream) {
  gpu::run_lt_fused_linear(cublaslt_library(), args, stream);
}
const char* refuse_matmul(const MatmulArgs& args) {
  return gpu::refuse_lt_matmul(cublaslt_library(), args);
}
const char* refuse_matmul_on(const MatmulArgs& args, Stream& stream) {
  return gpu::refuse_lt_matmul_on(cublaslt_library(), args, stream);
}
void run_matmul(const MatmulArgs& args, Stream& stream) {
  gpu::run_lt_matmul(cublaslt_library(), args, stream);
}

}  // namespace

const gpu::LtVendor kCublasLtVendor{.name = "cuBLASLt",
                                    .prefix = "cublasLt",
                                    .override_variable = "RBEE_CUBLASLT_LIBRARY",
                                    .files = {"libcublasLt.so.13", "libcublasLt.so.12"},
                                    .numbers = gpu::kCublasLtNumbers};

const Impl<LinearArgs> linear_cublaslt{"cublaslt", refuse_linear, run_linear, refuse_linear_on};
const Impl<FusedLinearArgs> fused_linear_cublaslt{"cublaslt", refuse_fused, run_fused,
                                                  refuse_fused_on};
const Impl<MatmulArgs> matmul_cublaslt{"cublaslt", refuse_matmul, run_matmul, refuse_matmul_on};

}  // namespace rbee::cuda
