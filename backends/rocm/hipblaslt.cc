#include "backends/rocm/hipblaslt.h"

#include "backends/gpu/ops/lt_products.h"
#include "backends/rocm/products_trial.h"

namespace rbee::rocm {

gpu::LtLibrary& hipblaslt_library() {
  // Never destroyed: at the end of a program the driver may be gone before us.
  static auto* const opened = new gpu::LtLibrary(kHipblasLtVendor);
  return *opened;
}

namespace {

const char* refuse_linear(const LinearArgs& args) {
  return gpu::refuse_lt_linear(hipblaslt_library(), args);
}
const char* refuse_linear_on(const LinearArgs& args, Stream& stream) {
  return gpu::refuse_lt_linear_on(hipblaslt_library(), args, stream);
}
void run_linear(const LinearArgs& args, Stream& stream) {
  gpu::run_lt_linear(hipblaslt_library(), args, stream);
}
const char* refuse_fused(const FusedLinearArgs& args) {
  return gpu::refuse_lt_fused_linear(hipblaslt_library(), args);
}
const char* refuse_fused_on(const FusedLinearArgs& args, Stream& stream) {
  return gpu::refuse_lt_fused_linear_on(hipblaslt_library(), args, stream);
}
void run_fused(const FusedLinearArgs& args, Stream& stream) {
  gpu::run_lt_fused_linear(hipblaslt_library(), args, stream);
}
const char* refuse_matmul(const MatmulArgs& args) {
  return gpu::refuse_lt_matmul(hipblaslt_library(), args);
}
const char* refuse_matmul_on(const MatmulArgs& args, Stream& stream) {
  return gpu::refuse_lt_matmul_on(hipblaslt_library(), args, stream);
}
void run_matmul(const MatmulArgs& args, Stream& stream) {
  gpu::run_lt_matmul(hipblaslt_library(), args, stream);
}

}  // namespace

constinit const gpu::LtVendor kHipblasLtVendor{
    .name = "hipBLASLt",
    .prefix = "hipblasLt",
    .override_variable = "RBEE_HIPBLASLT_LIBRARY",
    .files = {"libhipblaslt.so.1", "libhipblaslt.so.0", "/opt/rocm/lib/libhipblaslt.so.1",
              "/opt/rocm/lib/libhipblaslt.so.0", "/opt/rocm/core/lib/libhipblaslt.so.1"},
    .numbers = gpu::kHipblasLtNumbers,
    .asked_by = "RBEE_HIPBLASLT",
    .why_not = why_products_end_processes};

const Impl<LinearArgs> linear_hipblaslt{"hipblaslt", refuse_linear, run_linear, refuse_linear_on};
const Impl<FusedLinearArgs> fused_linear_hipblaslt{"hipblaslt", refuse_fused, run_fused,
                                                   refuse_fused_on};
const Impl<MatmulArgs> matmul_hipblaslt{"hipblaslt", refuse_matmul, run_matmul, refuse_matmul_on};

}  // namespace rbee::rocm
