#pragma once
// The entry points of the HIP runtime that are used, all exported unversioned and unchanged since
// ROCm 5 (HIP documentation, "HIP runtime API"). Handles are opaque pointers here;
// tests/gpu/signatures compares the declarations with the headers of HIP 5 and of today.

#include <cstddef>

namespace rbee::rocm {

using Status = int;  // hipError_t; 0 = success
struct Opaque;
using Handle = Opaque*;  // hipStream_t, hipEvent_t, hipModule_t, hipFunction_t, hipGraph_t ...

// F(exported name, parameters)
#define RB_HIP_FUNCTIONS(F)                                                                     \
  F(hipInit, (unsigned))                                                                        \
  F(hipRuntimeGetVersion, (int*))                                                               \
  F(hipGetDeviceCount, (int*))                                                                  \
  F(hipSetDevice, (int))                                                                        \
  F(hipDeviceGetName, (char*, int, int))                                                        \
  F(hipDeviceGetAttribute, (int*, int, int))                                                    \
  F(hipDeviceTotalMem, (size_t*, int))                                                          \
  F(hipMemGetInfo, (size_t*, size_t*))                                                          \
  F(hipMalloc, (void**, size_t))                                                                \
  F(hipFree, (void*))                                                                           \
  F(hipHostMalloc, (void**, size_t, unsigned))                                                  \
  F(hipHostFree, (void*))                                                                       \
  F(hipMemcpyAsync, (void*, const void*, size_t, int, Handle))                                  \
  F(hipMemcpyPeerAsync, (void*, int, const void*, int, size_t, Handle))                         \
  F(hipMemsetAsync, (void*, int, size_t, Handle))                                               \
  F(hipStreamCreateWithFlags, (Handle*, unsigned))                                              \
  F(hipStreamDestroy, (Handle))                                                                 \
  F(hipStreamSynchronize, (Handle))                                                             \
  F(hipStreamWaitEvent, (Handle, Handle, unsigned))                                             \
  F(hipEventCreateWithFlags, (Handle*, unsigned))                                               \
  F(hipEventDestroy, (Handle))                                                                  \
  F(hipEventRecord, (Handle, Handle))                                                           \
  F(hipEventSynchronize, (Handle))                                                              \
  F(hipEventElapsedTime, (float*, Handle, Handle))                                              \
  F(hipModuleLoadData, (Handle*, const void*))                                                  \
  F(hipModuleUnload, (Handle))                                                                  \
  F(hipModuleGetFunction, (Handle*, Handle, const char*))                                       \
  F(hipModuleLaunchKernel, (Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                            unsigned, Handle, void**, void**))                                  \
  F(hipStreamBeginCapture, (Handle, int))                                                       \
  F(hipStreamEndCapture, (Handle, Handle*))                                                     \
  F(hipGraphInstantiate, (Handle*, Handle, Handle*, char*, size_t))                             \
  F(hipGraphLaunch, (Handle, Handle))                                                           \
  F(hipGraphExecDestroy, (Handle))                                                              \
  F(hipGraphDestroy, (Handle))                                                                  \
  F(hipGetErrorName, (Status))                                                                  \
  F(hipGetErrorString, (Status))

// What two of them return instead of a status.
template <typename Name>
struct ResultOf {
  using type = Status;
};
struct hipGetErrorName;
struct hipGetErrorString;
template <>
struct ResultOf<hipGetErrorName> {
  using type = const char*;
};
template <>
struct ResultOf<hipGetErrorString> {
  using type = const char*;
};

// The architecture's name has no attribute; it stands in the properties structure, whose layout is
// fixed by the name of the call that fills it. One of the two is there.
using FillProperties = Status(void* properties, int ordinal);
struct PropertiesLayout {
  const char* call;
  size_t bytes;
  size_t architecture;  // offset of gcnArchName, a zero-terminated text
};
inline constexpr PropertiesLayout kPropertiesSince6 = {"hipGetDevicePropertiesR0600", 1472, 1160};
inline constexpr PropertiesLayout kPropertiesBefore6 = {"hipGetDeviceProperties", 792, 396};

// Values of HIP's enumerations.
enum StatusValue : int {
  kSuccess = 0,
  kErrorOutOfMemory = 2,
  kErrorNoDevice = 100,
  kErrorInvalidDevice = 101,
  kErrorInvalidImage = 200,
  kErrorNoBinaryForGpu = 209,
  kErrorInvalidKernelFile = 218,
  kErrorSharedObjectInitFailed = 303,
  kErrorNotFound = 500,
};
enum Attribute : int {
  kL2CacheSize = 19,
  kMaxThreadsPerBlock = 56,
  kMultiprocessorCount = 63,
  kMaxSharedMemoryPerBlock = 74,
  kWarpSize = 87,
};
enum MemcpyKind : int { kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3 };
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr int kCaptureRelaxed = 2;

struct Functions {
// A declarator takes no parentheses. NOLINTNEXTLINE(bugprone-macro-parentheses)
#define RB_MEMBER(name, parameters) ResultOf<struct name>::type(*name) parameters = nullptr;
  RB_HIP_FUNCTIONS(RB_MEMBER)
#undef RB_MEMBER
};

}  // namespace rbee::rocm
