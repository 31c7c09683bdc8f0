#pragma once
// The declarations of cuBLASLt's and hipBLASLt's headers that we use (cuBLAS documentation,
// "Using the cuBLASLt API"; hipBLASLt API reference). tests/gpu/signatures compares it with the
// headers.

#include <cstddef>
#include <cstdint>

#include "rbee/core/dtype.h"

namespace rbee::gpu {

struct LtOpaque;
using LtHandle = LtOpaque*;  // library, operation, layout, preference, stream

// F(name after the library's prefix, parameters); all return a status, 0 = success.
#define RB_LT_FUNCTIONS(F)                                                                     \
  F(Create, (LtHandle*))                                                                       \
  F(Destroy, (LtHandle))                                                                       \
  F(MatmulDescCreate, (LtHandle*, int compute_type, int scale_type))                           \
  F(MatmulDescDestroy, (LtHandle))                                                             \
  F(MatmulDescSetAttribute, (LtHandle, int attribute, const void*, size_t))                    \
  F(MatrixLayoutCreate, (LtHandle*, int type, uint64_t rows, uint64_t columns, int64_t pitch)) \
  F(MatrixLayoutDestroy, (LtHandle))                                                           \
  F(MatrixLayoutSetAttribute, (LtHandle, int attribute, const void*, size_t))                  \
  F(MatmulPreferenceCreate, (LtHandle*))                                                       \
  F(MatmulPreferenceSetAttribute, (LtHandle, int attribute, const void*, size_t))              \
  F(MatmulPreferenceDestroy, (LtHandle))                                                       \
  F(MatmulAlgoGetHeuristic,                                                                    \
    (LtHandle, LtHandle operation, LtHandle a, LtHandle b, LtHandle c, LtHandle d,             \
     LtHandle preference, int wanted, void* results, int* found))                              \
  F(Matmul, (LtHandle, LtHandle operation, const void* alpha, const void* a, LtHandle,         \
             const void* b, LtHandle, const void* beta, const void* c, LtHandle, void* d,      \
             LtHandle, const void* algorithm, void* workspace, size_t, LtHandle stream))

// Numbers that differ between the two libraries.
struct LtNumbers {
  int compute_f32, compute_f64;  // full precision
  int no_transpose, transpose;   // operations
  int transpose_a, transpose_b;  // attributes of an operation
  int epilogue, bias_pointer, bias_type;
  int batch_count, batch_stride;  // attributes of a layout
  int reduction_schemes;          // preference; 0: there is none
  int min_alignment_a;            // preference, also of b, c, d (+1..3); 0: there is none
  size_t algorithm_bytes;         // of the opaque algorithm that starts a heuristic's result
  int alloc_failed, invalid_value, not_supported, arch_mismatch;  // statuses
};

inline constexpr LtNumbers kCublasLtNumbers{.compute_f32 = 68,
                                            .compute_f64 = 70,
                                            .no_transpose = 0,
                                            .transpose = 1,
                                            .transpose_a = 3,
                                            .transpose_b = 4,
                                            .epilogue = 7,
                                            .bias_pointer = 8,
                                            .bias_type = 26,
                                            .batch_count = 5,
                                            .batch_stride = 6,
                                            .reduction_schemes = 3,
                                            .min_alignment_a = 5,
                                            .algorithm_bytes = 64,
                                            .alloc_failed = 3,
                                            .invalid_value = 7,
                                            .not_supported = 15,
                                            .arch_mismatch = 8};
inline constexpr LtNumbers kHipblasLtNumbers{.compute_f32 = 2,
                                             .compute_f64 = 7,
                                             .no_transpose = 111,
                                             .transpose = 112,
                                             .transpose_a = 0,
                                             .transpose_b = 1,
                                             .epilogue = 2,
                                             .bias_pointer = 3,
                                             .bias_type = 4,
                                             .batch_count = 0,
                                             .batch_stride = 1,
                                             .reduction_schemes = 0,
                                             .min_alignment_a = 0,
                                             .algorithm_bytes = 24,
                                             .alloc_failed = 2,
                                             .invalid_value = 3,
                                             .not_supported = 7,
                                             .arch_mismatch = 8};

// Numbers that both share.
inline constexpr int kLtNotInitialized = 1;  // status
inline constexpr int kLtWorkspaceLimit = 1;  // attribute of a preference
inline constexpr uint32_t kLtBiasEpilogue = 4;
inline constexpr uint32_t kLtReduceInPlace = 1;  // bits of reduction_schemes
inline constexpr uint32_t kLtReduceComputeType = 2;

// cudaDataType and hipDataType agree; -1: neither has it here.
constexpr int lt_number(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 0;
    case DType::f64:
      return 1;
    case DType::f16:
      return 2;
    case DType::bf16:
      return 14;
    default:
      return -1;
  }
}

// What follows the algorithm in a heuristic's result.
struct LtResultTail {
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

}  // namespace rbee::gpu
