// Compiles if backends/gpu/lt_numbers.h agrees with hipblaslt.h.

#define __HIP_PLATFORM_AMD__
#include <hipblaslt/hipblaslt.h>

#define RB_LT_THEIRS(name) ::hipblasLt##name
#include "tests/gpu/signatures/lt.h"

namespace rbee::gpu {

static_assert(same_result<hipblasLtMatmulHeuristicResult_t, hipblasLtMatmulAlgo_t>(
    kHipblasLtNumbers.algorithm_bytes));

constexpr LtNumbers kOurs = kHipblasLtNumbers;
RB_SAME_VALUE(0, HIPBLAS_STATUS_SUCCESS);
RB_SAME_VALUE(kLtNotInitialized, HIPBLAS_STATUS_NOT_INITIALIZED);
RB_SAME_VALUE(kOurs.alloc_failed, HIPBLAS_STATUS_ALLOC_FAILED);
RB_SAME_VALUE(kOurs.invalid_value, HIPBLAS_STATUS_INVALID_VALUE);
RB_SAME_VALUE(kOurs.not_supported, HIPBLAS_STATUS_NOT_SUPPORTED);
RB_SAME_VALUE(kOurs.arch_mismatch, HIPBLAS_STATUS_ARCH_MISMATCH);
RB_SAME_VALUE(kOurs.compute_f32, HIPBLAS_COMPUTE_32F);
RB_SAME_VALUE(kOurs.compute_f64, HIPBLAS_COMPUTE_64F);
RB_SAME_VALUE(kOurs.no_transpose, HIPBLAS_OP_N);
RB_SAME_VALUE(kOurs.transpose, HIPBLAS_OP_T);
RB_SAME_VALUE(kOurs.transpose_a, HIPBLASLT_MATMUL_DESC_TRANSA);
RB_SAME_VALUE(kOurs.transpose_b, HIPBLASLT_MATMUL_DESC_TRANSB);
RB_SAME_VALUE(kOurs.epilogue, HIPBLASLT_MATMUL_DESC_EPILOGUE);
RB_SAME_VALUE(kOurs.bias_pointer, HIPBLASLT_MATMUL_DESC_BIAS_POINTER);
RB_SAME_VALUE(kOurs.bias_type, HIPBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
RB_SAME_VALUE(kOurs.batch_count, HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
RB_SAME_VALUE(kOurs.batch_stride, HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
RB_SAME_VALUE(kLtWorkspaceLimit, HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
RB_SAME_VALUE(kLtBiasEpilogue, HIPBLASLT_EPILOGUE_BIAS);
RB_SAME_VALUE(lt_number(DType::f32), HIP_R_32F);
RB_SAME_VALUE(lt_number(DType::f64), HIP_R_64F);
RB_SAME_VALUE(lt_number(DType::f16), HIP_R_16F);
RB_SAME_VALUE(lt_number(DType::bf16), HIP_R_16BF);

}  // namespace rbee::gpu
