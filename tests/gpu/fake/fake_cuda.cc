// The fake runtime under the CUDA driver's names (backends/cuda/driver_functions.h).

#include <cstdio>
#include <cstring>

#include "backends/cuda/driver_functions.h"
#include "tests/gpu/fake/fake_runtime.h"
#include "tests/gpu/fake/fat_binary.h"
#include "tests/gpu/fake/tensor_map.h"

using namespace rbee::fake;

namespace {

using rbee::cuda::DevicePtr;
using rbee::cuda::Handle;
using rbee::cuda::TensorExtent;

// Bytes of an element of a tensor map's type.
uint64_t bytes_of(int type) {
  return type == rbee::cuda::kTensorU8 ? 1 : 2;
}

constexpr int kOldestCode = 80;         // programs have machine code or PTX for
constexpr int kOldestOverlapping = 90;  // accepts launches that overlap

Runtime& runtime() {
  return Runtime::instance();
}
template <typename T>
T* as(Handle handle) {
  return reinterpret_cast<T*>(handle);
}
void** out(Handle* handle) {
  return reinterpret_cast<void**>(handle);
}
void* pointer(DevicePtr data) {
  return reinterpret_cast<void*>(data);  // NOLINT(performance-no-int-to-ptr): as the driver's are
}

int capability() {
  return capability_of(runtime().options.architecture);
}

int device_of(Handle context) {
  return static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1;
}

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
LaunchLimits limits() {
  const int c = capability();
  const uint32_t kib = c < 75                                        ? 96
                       : c < 80                                      ? 64
                       : c == 80 || c == 87                          ? 163
                       : c == 86 || c == 89 || (c >= 120 && c < 130) ? 99
                                                                     : 227;
  return {.shared = kib << 10,
          .shared_unasked = 48 << 10,
          .blocks_x = 0x7fffffff,
          .threads_x = ~uint64_t{0}};
}

}  // namespace

const int rbee::fake::kDeviceOfNewThreads = -1;

#define ENTER(call) \
  if (const int status = runtime().enter(call)) return status
// For a call that the driver refuses if the thread has no current context.
#define ENTER_WITH_DEVICE(call) \
  if (const int status = runtime().enter_with_device(call)) return status
// Objects of a lost device are released, too.
#define GIVE_BACK(call, action)                         \
  const int status = runtime().enter_with_device(call); \
  const int given = action;                             \
  return status != kSuccess ? status : given

extern "C" {

int cuInit(unsigned) {
  ENTER("cuInit");
  return runtime().options.count > 0 ? kSuccess : kNoDevice;
}
int cuDriverGetVersion(int* version) {
  ENTER("cuDriverGetVersion");
  *version = runtime().version(13000);
  return kSuccess;
}
int cuGetErrorName(int status, const char** name) {
  switch (status) {
    case kOutOfMemory:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      return kSuccess;
    case kInvalidImage:
      *name = "CUDA_ERROR_INVALID_IMAGE";
      return kSuccess;
    default:
      *name = "CUDA_ERROR_UNKNOWN";
      return kSuccess;
  }
}
int cuGetErrorString(int status, const char** text) {
  *text = status_text(status);
  return kSuccess;
}
int cuDeviceGetCount(int* count) {
  ENTER("cuDeviceGetCount");
  *count = runtime().options.count;
  return kSuccess;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return kSuccess;
}
int cuDeviceGetName(char* name, int length, int device) {
  std::snprintf(name, static_cast<size_t>(length), "Fake NVIDIA GPU %d", device);
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  ENTER("cuDeviceGetAttribute");
  switch (attribute) {
    case rbee::cuda::kMaxThreadsPerBlock:
      *value = 1024;
      return kSuccess;
    case rbee::cuda::kMultiprocessorCount:
      *value = 2;
      return kSuccess;
    case rbee::cuda::kL2CacheSize:
      *value = 50 << 20;
      return kSuccess;
    case rbee::cuda::kComputeCapabilityMajor:
      *value = capability() / 10;
      return kSuccess;
    case rbee::cuda::kComputeCapabilityMinor:
      *value = capability() % 10;
      return kSuccess;
    case rbee::cuda::kMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(limits().shared);
      return kSuccess;
    default:
      return kInvalidValue;
  }
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = static_cast<size_t>(runtime().options.memory);
  return kSuccess;
}
int cuDevicePrimaryCtxRetain(Handle* context, int device) {
  ENTER("cuDevicePrimaryCtxRetain");
  // Context n stands for device n - 1. NOLINTNEXTLINE(performance-no-int-to-ptr)
  *context = reinterpret_cast<Handle>(static_cast<uintptr_t>(device) + 1);
  return kSuccess;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  ENTER("cuDevicePrimaryCtxRelease_v2");
  return kSuccess;
}
int cuCtxSetCurrent(Handle context) {
  ENTER("cuCtxSetCurrent");
  if (context == nullptr) return runtime().leave_device();
  return runtime().set_device(device_of(context));
}
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  ENTER_WITH_DEVICE("cuMemGetInfo_v2");
  return runtime().memory_info(free, total);
}
int cuMemAlloc_v2(DevicePtr* data, size_t bytes) {
  ENTER_WITH_DEVICE("cuMemAlloc_v2");
  void* memory = nullptr;
  const int status = runtime().allocate(&memory, bytes, false);
  *data = reinterpret_cast<DevicePtr>(memory);
  return status;
}
int cuMemFree_v2(DevicePtr data) {
  GIVE_BACK("cuMemFree_v2", runtime().free(pointer(data), false));
}
int cuMemHostAlloc(void** data, size_t bytes, unsigned) {
  ENTER_WITH_DEVICE("cuMemHostAlloc");
  return runtime().allocate(data, bytes, true);
}
int cuMemFreeHost(void* data) {
  GIVE_BACK("cuMemFreeHost", runtime().free(data, true));
}
int cuMemcpyHtoDAsync_v2(DevicePtr to, const void* from, size_t bytes, Handle stream) {
  ENTER_WITH_DEVICE("cuMemcpyHtoDAsync_v2");
  return runtime().copy(pointer(to), from, bytes, true, false, as<Stream>(stream));
}
int cuMemcpyDtoHAsync_v2(void* to, DevicePtr from, size_t bytes, Handle stream) {
  ENTER_WITH_DEVICE("cuMemcpyDtoHAsync_v2");
  return runtime().copy(to, pointer(from), bytes, false, true, as<Stream>(stream));
}
int cuMemcpyDtoDAsync_v2(DevicePtr to, DevicePtr from, size_t bytes, Handle stream) {
  ENTER_WITH_DEVICE("cuMemcpyDtoDAsync_v2");
  return runtime().copy(pointer(to), pointer(from), bytes, true, true, as<Stream>(stream));
}
int cuMemcpyPeerAsync(DevicePtr to, Handle to_context, DevicePtr from, Handle from_context,
                      size_t bytes, Handle stream) {
  ENTER_WITH_DEVICE("cuMemcpyPeerAsync");
  return runtime().copy_peer(pointer(to), device_of(to_context), pointer(from),
                             device_of(from_context), bytes, as<Stream>(stream));
}
int cuMemsetD8Async(DevicePtr data, unsigned char value, size_t bytes, Handle stream) {
  ENTER_WITH_DEVICE("cuMemsetD8Async");
  return runtime().fill(pointer(data), value, bytes, as<Stream>(stream));
}
int cuStreamCreate(Handle* stream, unsigned) {
  ENTER_WITH_DEVICE("cuStreamCreate");
  return runtime().create_stream(out(stream));
}
int cuStreamDestroy_v2(Handle stream) {
  GIVE_BACK("cuStreamDestroy_v2", runtime().destroy_stream(as<Stream>(stream)));
}
int cuStreamSynchronize(Handle stream) {
  ENTER_WITH_DEVICE("cuStreamSynchronize");
  return runtime().synchronize(as<Stream>(stream));
}
int cuStreamWaitEvent(Handle stream, Handle event, unsigned) {
  ENTER_WITH_DEVICE("cuStreamWaitEvent");
  return runtime().wait(as<Stream>(stream), as<Event>(event));
}
int cuEventCreate(Handle* event, unsigned) {
  ENTER_WITH_DEVICE("cuEventCreate");
  return runtime().create_event(out(event));
}
int cuEventDestroy_v2(Handle event) {
  GIVE_BACK("cuEventDestroy_v2", runtime().destroy_event(as<Event>(event)));
}
int cuEventRecord(Handle event, Handle stream) {
  ENTER_WITH_DEVICE("cuEventRecord");
  return runtime().record(as<Event>(event), as<Stream>(stream));
}
int cuEventSynchronize(Handle event) {
  ENTER_WITH_DEVICE("cuEventSynchronize");
  return runtime().synchronize(as<Event>(event));
}
int cuEventElapsedTime(float* ms, Handle start, Handle end) {
  ENTER_WITH_DEVICE("cuEventElapsedTime");
  *ms = static_cast<float>(as<Event>(end)->ms - as<Event>(start)->ms);
  return kSuccess;
}
int cuModuleLoadData(Handle* module, const void* image) {
  ENTER_WITH_DEVICE("cuModuleLoadData");
  if (capability() < kOldestCode) return kNoBinary;
  return runtime().load_module(out(module), image, read_fat_binary);
}
int cuModuleUnload(Handle module) {
  GIVE_BACK("cuModuleUnload", runtime().unload_module(as<Module>(module)));
}
int cuModuleGetFunction(Handle* kernel, Handle module, const char* name) {
  ENTER_WITH_DEVICE("cuModuleGetFunction");
  return runtime().find_kernel(out(kernel), as<Module>(module), name);
}
int cuFuncGetAttribute(int* value, int attribute, Handle) {
  ENTER_WITH_DEVICE("cuFuncGetAttribute");
  if (attribute != rbee::cuda::kFuncPtxVersion) return kInvalidValue;
  const int told = runtime().options.ptx;
  *value = told != 0 ? told : capability();
  return kSuccess;
}
int cuFuncSetAttribute(Handle kernel, int attribute, int value) {
  ENTER_WITH_DEVICE("cuFuncSetAttribute");
  if (attribute != rbee::cuda::kFuncMaxDynamicShared) return kInvalidValue;
  return runtime().allow_shared(as<Kernel>(kernel), static_cast<uint32_t>(value), limits());
}
int cuLaunchKernelEx(const rbee::cuda::LaunchConfig* config, Handle kernel, void** params, void**) {
  ENTER_WITH_DEVICE("cuLaunchKernelEx");
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const int id = config->attributes[i].id;
    const int ptx = runtime().options.ptx;
    const bool known = id == rbee::cuda::kProgrammaticSerialization &&
                       capability() >= kOldestOverlapping &&
                       (ptx == 0 || ptx >= kOldestOverlapping);
    if (const int status = runtime().check_attribute(id, known)) return status;
    ENTER("launch that overlaps");
  }
  const LaunchShape shape{
      {config->grid_x, config->grid_y, config->grid_z}, config->block_x, config->shared_bytes};
  return runtime().launch(as<Kernel>(kernel), shape, limits(), as<Stream>(config->stream), params);
}
int cuStreamBeginCapture_v2(Handle stream, int mode) {
  ENTER_WITH_DEVICE("cuStreamBeginCapture_v2");
  return runtime().begin_capture(as<Stream>(stream), mode);
}
int cuStreamEndCapture(Handle stream, Handle* graph) {
  const int status = runtime().enter_with_device("cuStreamEndCapture");
  return runtime().end_capture(as<Stream>(stream), status, out(graph));
}
int cuGraphInstantiateWithFlags(Handle* executable, Handle graph, unsigned long long) {
  ENTER_WITH_DEVICE("cuGraphInstantiateWithFlags");
  *executable = graph;
  return runtime().instantiate(as<Graph>(graph));
}
int cuGraphLaunch(Handle graph, Handle stream) {
  ENTER_WITH_DEVICE("cuGraphLaunch");
  return runtime().launch_graph(as<Graph>(graph), as<Stream>(stream));
}
int cuGraphExecDestroy(Handle graph) {
  GIVE_BACK("cuGraphExecDestroy", runtime().destroy_graph(as<Graph>(graph)));
}
int cuGraphDestroy(Handle graph) {
  GIVE_BACK("cuGraphDestroy", runtime().destroy_graph(as<Graph>(graph)));
}
int cuTensorMapEncodeTiled(rbee::shared::TensorMap* map, int type, unsigned rank, void* data,
                           const TensorExtent* sizes, const TensorExtent* strides,
                           const unsigned* box, const unsigned* steps, int interleave, int swizzle,
                           int, int) {
  ENTER("cuTensorMapEncodeTiled");
  *map = {};
  const TensorArgs tensor{bytes_of(type), rank, data, sizes, strides, steps, interleave, swizzle};
  return runtime().map_tensor(data, tensor.bytes(), tiles_fault(tensor, box));
}
int cuTensorMapEncodeIm2col(rbee::shared::TensorMap* map, int type, unsigned rank, void* data,
                            const TensorExtent* sizes, const TensorExtent* strides,
                            const int* lower, const int* upper, unsigned channels, unsigned pixels,
                            const unsigned* steps, int interleave, int swizzle, int, int) {
  ENTER("cuTensorMapEncodeIm2col");
  *map = {};
  const TensorArgs tensor{bytes_of(type), rank, data, sizes, strides, steps, interleave, swizzle};
  return runtime().map_tensor(data, tensor.bytes(),
                              pixels_fault(tensor, lower, upper, channels, pixels));
}
}
