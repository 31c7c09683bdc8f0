// Compiles if backends/cuda/driver_functions.h agrees with the toolkit's cuda.h.

// Every version of every function is declared, under the name that libcuda.so.1 exports.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <cstddef>

#include "backends/cuda/driver_functions.h"
#include "tests/gpu/signatures/same_kind.h"

namespace rbee::cuda {

#define RB_COMPARE(name, parameters) RB_SAME_SIGNATURE(decltype(Functions::name), ::name);
RB_CUDA_FUNCTIONS(RB_COMPARE)
#undef RB_COMPARE

static_assert(signatures::same_kind<Status, CUresult>());
static_assert(signatures::same_kind<DevicePtr, CUdeviceptr>());

static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig));
#define RB_SAME_MEMBER(ours, theirs)                                               \
  static_assert(offsetof(LaunchConfig, ours) == offsetof(CUlaunchConfig, theirs)); \
  static_assert(                                                                   \
      signatures::same_kind<decltype(LaunchConfig::ours), decltype(CUlaunchConfig::theirs)>())
RB_SAME_MEMBER(grid_x, gridDimX);
RB_SAME_MEMBER(grid_y, gridDimY);
RB_SAME_MEMBER(grid_z, gridDimZ);
RB_SAME_MEMBER(block_x, blockDimX);
RB_SAME_MEMBER(block_y, blockDimY);
RB_SAME_MEMBER(block_z, blockDimZ);
RB_SAME_MEMBER(shared_bytes, sharedMemBytes);
RB_SAME_MEMBER(stream, hStream);
static_assert(offsetof(LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
RB_SAME_MEMBER(attribute_count, numAttrs);

static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(LaunchAttribute, id) == offsetof(CUlaunchAttribute, id));
static_assert(offsetof(LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(offsetof(CUlaunchAttributeValue, programmaticStreamSerializationAllowed) == 0);
static_assert(signatures::same_kind<
              int, decltype(CUlaunchAttributeValue::programmaticStreamSerializationAllowed)>());

RB_SAME_VALUE(kSuccess, CUDA_SUCCESS);
RB_SAME_VALUE(kErrorOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
RB_SAME_VALUE(kErrorNoDevice, CUDA_ERROR_NO_DEVICE);
RB_SAME_VALUE(kErrorInvalidImage, CUDA_ERROR_INVALID_IMAGE);
RB_SAME_VALUE(kErrorNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
RB_SAME_VALUE(kErrorInvalidPtx, CUDA_ERROR_INVALID_PTX);
RB_SAME_VALUE(kErrorJitCompilerNotFound, CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
RB_SAME_VALUE(kErrorUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
RB_SAME_VALUE(kErrorJitCompilationDisabled, CUDA_ERROR_JIT_COMPILATION_DISABLED);
RB_SAME_VALUE(kErrorSharedObjectInitFailed, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED);
RB_SAME_VALUE(kErrorNotFound, CUDA_ERROR_NOT_FOUND);
RB_SAME_VALUE(kMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
RB_SAME_VALUE(kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
RB_SAME_VALUE(kL2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
RB_SAME_VALUE(kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
RB_SAME_VALUE(kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
RB_SAME_VALUE(kMaxSharedMemoryPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
RB_SAME_VALUE(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
RB_SAME_VALUE(kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
RB_SAME_VALUE(kFuncPtxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION);
RB_SAME_VALUE(kFuncMaxDynamicShared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
RB_SAME_VALUE(kCaptureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(sizeof(shared::TensorMap) == sizeof(CUtensorMap));
// CUDA 13's type needs 128; the functions that fill it in need 64 (their descriptions).
static_assert(alignof(shared::TensorMap) >= 64);
RB_SAME_VALUE(kTensorU8, CU_TENSOR_MAP_DATA_TYPE_UINT8);
RB_SAME_VALUE(kTensorF16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
RB_SAME_VALUE(kTensorBf16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
RB_SAME_VALUE(kNoInterleave, CU_TENSOR_MAP_INTERLEAVE_NONE);
RB_SAME_VALUE(kNoSwizzle, CU_TENSOR_MAP_SWIZZLE_NONE);
RB_SAME_VALUE(kSwizzle128, CU_TENSOR_MAP_SWIZZLE_128B);
RB_SAME_VALUE(kPromoteTo128, CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
RB_SAME_VALUE(kPromoteTo256, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
RB_SAME_VALUE(kZerosOutside, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
RB_SAME_VALUE(kProgrammaticSerialization, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);

}  // namespace rbee::cuda
