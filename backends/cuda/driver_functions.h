#pragma once
// The entry points of the NVIDIA driver API that are used, as libcuda.so.1 exports them (CUDA
// Toolkit documentation, "CUDA Driver API"). Handles are opaque pointers here;
// tests/gpu/signatures compares the declarations with the toolkit's header.

#include <cstddef>
#include <cstdint>

#include "backends/shared/tensor_map_params.h"

namespace rbee::cuda {

using Status = int;                    // CUresult; 0 = success
using DevicePtr = unsigned long long;  // CUdeviceptr
using TensorExtent = uint64_t;         // cuuint64_t
struct Opaque;
using Handle = Opaque*;  // CUcontext, CUstream, CUevent, CUmodule, CUfunction, CUgraph, CUgraphExec

// CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
  int id;
  int padding;
  int value[16];  // a union of 64 bytes; the attributes used here are one int
};
struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  Handle stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};

// F(exported name, parameters)
#define RB_CUDA_FUNCTIONS(F)                                                             \
  F(cuInit, (unsigned))                                                                  \
  F(cuDriverGetVersion, (int*))                                                          \
  F(cuGetErrorName, (Status, const char**))                                              \
  F(cuGetErrorString, (Status, const char**))                                            \
  F(cuDeviceGetCount, (int*))                                                            \
  F(cuDeviceGet, (int*, int))                                                            \
  F(cuDeviceGetName, (char*, int, int))                                                  \
  F(cuDeviceGetAttribute, (int*, int, int))                                              \
  F(cuDeviceTotalMem_v2, (size_t*, int))                                                 \
  F(cuDevicePrimaryCtxRetain, (Handle*, int))                                            \
  F(cuDevicePrimaryCtxRelease_v2, (int))                                                 \
  F(cuCtxSetCurrent, (Handle))                                                           \
  F(cuMemGetInfo_v2, (size_t*, size_t*))                                                 \
  F(cuMemAlloc_v2, (DevicePtr*, size_t))                                                 \
  F(cuMemFree_v2, (DevicePtr))                                                           \
  F(cuMemHostAlloc, (void**, size_t, unsigned))                                          \
  F(cuMemFreeHost, (void*))                                                              \
  F(cuMemcpyHtoDAsync_v2, (DevicePtr, const void*, size_t, Handle))                      \
  F(cuMemcpyDtoHAsync_v2, (void*, DevicePtr, size_t, Handle))                            \
  F(cuMemcpyDtoDAsync_v2, (DevicePtr, DevicePtr, size_t, Handle))                        \
  F(cuMemcpyPeerAsync, (DevicePtr, Handle, DevicePtr, Handle, size_t, Handle))           \
  F(cuMemsetD8Async, (DevicePtr, unsigned char, size_t, Handle))                         \
  F(cuStreamCreate, (Handle*, unsigned))                                                 \
  F(cuStreamDestroy_v2, (Handle))                                                        \
  F(cuStreamSynchronize, (Handle))                                                       \
  F(cuStreamWaitEvent, (Handle, Handle, unsigned))                                       \
  F(cuEventCreate, (Handle*, unsigned))                                                  \
  F(cuEventDestroy_v2, (Handle))                                                         \
  F(cuEventRecord, (Handle, Handle))                                                     \
  F(cuEventSynchronize, (Handle))                                                        \
  F(cuEventElapsedTime, (float*, Handle, Handle))                                        \
  F(cuModuleLoadData, (Handle*, const void*))                                            \
  F(cuModuleUnload, (Handle))                                                            \
  F(cuModuleGetFunction, (Handle*, Handle, const char*))                                 \
  F(cuFuncGetAttribute, (int*, int, Handle))                                             \
  F(cuFuncSetAttribute, (Handle, int, int))                                              \
  F(cuLaunchKernelEx, (const LaunchConfig*, Handle, void**, void**))                     \
  F(cuStreamBeginCapture_v2, (Handle, int))                                              \
  F(cuStreamEndCapture, (Handle, Handle*))                                               \
  F(cuGraphInstantiateWithFlags, (Handle*, Handle, unsigned long long))                  \
  F(cuGraphLaunch, (Handle, Handle))                                                     \
  F(cuGraphExecDestroy, (Handle))                                                        \
  F(cuGraphDestroy, (Handle))                                                            \
  F(cuTensorMapEncodeTiled,                                                              \
    (shared::TensorMap*, int, unsigned, void*, const TensorExtent*, const TensorExtent*, \
     const unsigned*, const unsigned*, int, int, int, int))                              \
  F(cuTensorMapEncodeIm2col,                                                             \
    (shared::TensorMap*, int, unsigned, void*, const TensorExtent*, const TensorExtent*, \
     const int*, const int*, unsigned, unsigned, const unsigned*, int, int, int, int))

struct Functions {
// A declarator takes no parentheses. NOLINTNEXTLINE(bugprone-macro-parentheses)
#define RB_MEMBER(name, parameters) Status(*name) parameters = nullptr;
  RB_CUDA_FUNCTIONS(RB_MEMBER)
#undef RB_MEMBER
};

// Values of the driver API's enumerations.
enum StatusValue : int {
  kSuccess = 0,
  kErrorOutOfMemory = 2,
  kErrorNoDevice = 100,
  kErrorInvalidImage = 200,
  kErrorNoBinaryForGpu = 209,
  kErrorInvalidPtx = 218,
  kErrorJitCompilerNotFound = 221,
  kErrorUnsupportedPtxVersion = 222,
  kErrorJitCompilationDisabled = 223,
  kErrorSharedObjectInitFailed = 303,
  kErrorNotFound = 500,
};
enum Attribute : int {
  kMaxThreadsPerBlock = 1,
  kMultiprocessorCount = 16,
  kL2CacheSize = 38,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerBlockOptin = 97,
};
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr int kFuncMaxDynamicShared = 8;
inline constexpr int kFuncPtxVersion = 5;  // ten times the major number and the minor one
inline constexpr int kCaptureRelaxed = 2;
inline constexpr int kProgrammaticSerialization = 6;
// Of tensor maps.
inline constexpr int kTensorU8 = 0, kTensorF16 = 6, kTensorBf16 = 9;
inline constexpr int kNoInterleave = 0;
inline constexpr int kNoSwizzle = 0;
inline constexpr int kSwizzle128 = 3;
// What the second-level cache fetches at once, in bytes.
inline constexpr int kPromoteTo128 = 2, kPromoteTo256 = 3;
inline constexpr int kZerosOutside = 0;

}  // namespace rbee::cuda
