// Compiles if backends/gpu/lt_numbers.h agrees with cublasLt.h.

#include <cublasLt.h>

#define RB_LT_THEIRS(name) ::cublasLt##name
#include "tests/gpu/signatures/lt.h"

namespace rbee::gpu {

static_assert(same_result<cublasLtMatmulHeuristicResult_t, cublasLtMatmulAlgo_t>(
    kCublasLtNumbers.algorithm_bytes));

constexpr LtNumbers kOurs = kCublasLtNumbers;
RB_SAME_VALUE(0, CUBLAS_STATUS_SUCCESS);
RB_SAME_VALUE(kLtNotInitialized, CUBLAS_STATUS_NOT_INITIALIZED);
RB_SAME_VALUE(kOurs.alloc_failed, CUBLAS_STATUS_ALLOC_FAILED);
RB_SAME_VALUE(kOurs.invalid_value, CUBLAS_STATUS_INVALID_VALUE);
RB_SAME_VALUE(kOurs.not_supported, CUBLAS_STATUS_NOT_SUPPORTED);
RB_SAME_VALUE(kOurs.arch_mismatch, CUBLAS_STATUS_ARCH_MISMATCH);
RB_SAME_VALUE(kOurs.compute_f32, CUBLAS_COMPUTE_32F);
RB_SAME_VALUE(kOurs.compute_f64, CUBLAS_COMPUTE_64F);
RB_SAME_VALUE(kOurs.no_transpose, CUBLAS_OP_N);
RB_SAME_VALUE(kOurs.transpose, CUBLAS_OP_T);
RB_SAME_VALUE(kOurs.transpose_a, CUBLASLT_MATMUL_DESC_TRANSA);
RB_SAME_VALUE(kOurs.transpose_b, CUBLASLT_MATMUL_DESC_TRANSB);
RB_SAME_VALUE(kOurs.epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
RB_SAME_VALUE(kOurs.bias_pointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
RB_SAME_VALUE(kOurs.bias_type, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
RB_SAME_VALUE(kOurs.batch_count, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
RB_SAME_VALUE(kOurs.batch_stride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
RB_SAME_VALUE(kOurs.reduction_schemes, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
RB_SAME_VALUE(kOurs.min_alignment_a, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
RB_SAME_VALUE(kOurs.min_alignment_a + 1, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
RB_SAME_VALUE(kOurs.min_alignment_a + 2, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
RB_SAME_VALUE(kOurs.min_alignment_a + 3, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
RB_SAME_VALUE(kLtWorkspaceLimit, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
RB_SAME_VALUE(kLtBiasEpilogue, CUBLASLT_EPILOGUE_BIAS);
RB_SAME_VALUE(kLtReduceInPlace, CUBLASLT_REDUCTION_SCHEME_INPLACE);
RB_SAME_VALUE(kLtReduceComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
RB_SAME_VALUE(lt_number(DType::f32), CUDA_R_32F);
RB_SAME_VALUE(lt_number(DType::f64), CUDA_R_64F);
RB_SAME_VALUE(lt_number(DType::f16), CUDA_R_16F);
RB_SAME_VALUE(lt_number(DType::bf16), CUDA_R_16BF);

}  // namespace rbee::gpu
