// Compiles if backends/rocm/hip_functions.h agrees with HIP's headers: those of version 5, and
// those of 6 and later, where the properties structure grew and its call was renamed.

#define __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_HCC__           // what version 5 asks for as well
#define __HIP_DISABLE_CPP_FUNCTIONS__  // overloads have no single type
#include <hip/hip_runtime_api.h>
#include <hip/hip_version.h>

// Newer headers redirect a function's old name to today's version; we use exported names.
#undef hipGetDeviceProperties

#include <cstddef>

#include "backends/rocm/hip_functions.h"
#include "tests/gpu/signatures/same_kind.h"

namespace rbee::rocm {

#define RB_COMPARE(name, parameters) RB_SAME_SIGNATURE(decltype(Functions::name), ::name);
RB_HIP_FUNCTIONS(RB_COMPARE)
#undef RB_COMPARE

static_assert(signatures::same_kind<Status, hipError_t>());

#if HIP_VERSION_MAJOR >= 6
constexpr PropertiesLayout kLayout = kPropertiesSince6;
using Properties = hipDeviceProp_tR0600;
RB_SAME_SIGNATURE(FillProperties*, ::hipGetDevicePropertiesR0600);
#else
constexpr PropertiesLayout kLayout = kPropertiesBefore6;
using Properties = hipDeviceProp_t;
RB_SAME_SIGNATURE(FillProperties*, ::hipGetDeviceProperties);
#endif
static_assert(kLayout.bytes == sizeof(Properties));
static_assert(kLayout.architecture == offsetof(Properties, gcnArchName));

RB_SAME_VALUE(kSuccess, hipSuccess);
RB_SAME_VALUE(kErrorOutOfMemory, hipErrorOutOfMemory);
RB_SAME_VALUE(kErrorNoDevice, hipErrorNoDevice);
RB_SAME_VALUE(kErrorInvalidDevice, hipErrorInvalidDevice);
RB_SAME_VALUE(kErrorInvalidImage, hipErrorInvalidImage);
RB_SAME_VALUE(kErrorNoBinaryForGpu, hipErrorNoBinaryForGpu);
RB_SAME_VALUE(kErrorInvalidKernelFile, hipErrorInvalidKernelFile);
RB_SAME_VALUE(kErrorSharedObjectInitFailed, hipErrorSharedObjectInitFailed);
RB_SAME_VALUE(kErrorNotFound, hipErrorNotFound);
RB_SAME_VALUE(kL2CacheSize, hipDeviceAttributeL2CacheSize);
RB_SAME_VALUE(kMaxThreadsPerBlock, hipDeviceAttributeMaxThreadsPerBlock);
RB_SAME_VALUE(kMultiprocessorCount, hipDeviceAttributeMultiprocessorCount);
RB_SAME_VALUE(kMaxSharedMemoryPerBlock, hipDeviceAttributeMaxSharedMemoryPerBlock);
RB_SAME_VALUE(kWarpSize, hipDeviceAttributeWarpSize);
RB_SAME_VALUE(kHostToDevice, hipMemcpyHostToDevice);
RB_SAME_VALUE(kDeviceToHost, hipMemcpyDeviceToHost);
RB_SAME_VALUE(kDeviceToDevice, hipMemcpyDeviceToDevice);
RB_SAME_VALUE(kStreamNonBlocking, hipStreamNonBlocking);
RB_SAME_VALUE(kEventDisableTiming, hipEventDisableTiming);
RB_SAME_VALUE(kCaptureRelaxed, hipStreamCaptureModeRelaxed);

}  // namespace rbee::rocm
