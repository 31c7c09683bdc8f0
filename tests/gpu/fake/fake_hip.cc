// The fake runtime under HIP's names (backends/rocm/hip_functions.h). RB_FAKE_HIP_5: as HIP 5,
// which has only the older call for properties.

#include <cstring>
#include <string>

#include "backends/rocm/hip_functions.h"
#include "tests/gpu/fake/fake_runtime.h"

using namespace rbee::fake;

namespace {

using rbee::rocm::Handle;

#ifdef RB_FAKE_HIP_5
#define RB_GET_PROPERTIES hipGetDeviceProperties
constexpr rbee::rocm::PropertiesLayout kProperties = rbee::rocm::kPropertiesBefore6;
constexpr int kVersion = 50221153;
constexpr Status kInitWithoutDevice = kInvalidDevice;  // as in Debian 12's HIP 5.2
#else
#define RB_GET_PROPERTIES hipGetDevicePropertiesR0600
constexpr rbee::rocm::PropertiesLayout kProperties = rbee::rocm::kPropertiesSince6;
constexpr int kVersion = 60443483;
constexpr Status kInitWithoutDevice = kSuccess;
#endif

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
void copy_text(char* to, int length, const std::string& text) {
  std::strncpy(to, text.c_str(), static_cast<size_t>(length) - 1);
  to[length - 1] = '\0';
}

// Threads along an axis are counted in 32 bits (HIP documentation, hipModuleLaunchKernel); shared
// memory is the architectures' (LLVM "User Guide for AMDGPU Backend").
LaunchLimits limits() {
  const auto& options = runtime().options;
  const uint32_t usual = options.architecture == "gfx950" ? 160 << 10 : 64 << 10;
  const uint32_t shared = options.shared != 0 ? options.shared : usual;
  return {
      .shared = shared, .shared_unasked = shared, .blocks_x = 0x7fffffff, .threads_x = 0xffffffff};
}

}  // namespace

const int rbee::fake::kDeviceOfNewThreads = 0;

#define ENTER(call) \
  if (const int status = runtime().enter(call)) return status
// Objects of a lost device are released, too.
#define GIVE_BACK(call, action)             \
  const int status = runtime().enter(call); \
  const int given = action;                 \
  return status != kSuccess ? status : given

extern "C" {

int hipInit(unsigned) {
  ENTER("hipInit");
  return runtime().options.count > 0 ? kSuccess : kInitWithoutDevice;
}
int hipRuntimeGetVersion(int* version) {
  *version = runtime().version(kVersion);
  return kSuccess;
}
const char* hipGetErrorName(int status) {
  switch (status) {
    case kOutOfMemory:
      return "hipErrorOutOfMemory";
    case kInvalidImage:
      return "hipErrorInvalidImage";
    default:
      return "hipErrorUnknown";
  }
}
const char* hipGetErrorString(int status) {
  return status_text(status);
}
int hipGetDeviceCount(int* count) {
  ENTER("hipGetDeviceCount");
  *count = runtime().options.count;
  return *count > 0 ? kSuccess : kNoDevice;
}
int hipSetDevice(int device) {
  ENTER("hipSetDevice");
  return runtime().set_device(device);
}
int hipDeviceGetName(char* name, int length, int device) {
  ENTER("hipDeviceGetName");
  copy_text(name, length, "Fake AMD GPU " + std::to_string(device));
  return kSuccess;
}
int hipDeviceTotalMem(size_t* bytes, int) {
  *bytes = static_cast<size_t>(runtime().options.memory);
  return kSuccess;
}
int hipDeviceGetAttribute(int* value, int attribute, int) {
  ENTER("hipDeviceGetAttribute");
  switch (attribute) {
    case rbee::rocm::kL2CacheSize:
      *value = 4 << 20;
      return kSuccess;
    case rbee::rocm::kMaxThreadsPerBlock:
      *value = 1024;
      return kSuccess;
    case rbee::rocm::kMultiprocessorCount:
      *value = 2;
      return kSuccess;
    case rbee::rocm::kMaxSharedMemoryPerBlock:
      *value = static_cast<int>(limits().shared);
      return kSuccess;
    case rbee::rocm::kWarpSize:
      *value = runtime().options.lanes;
      return kSuccess;
    default:
      return kInvalidValue;
  }
}
int RB_GET_PROPERTIES(void* properties, int) {
  ENTER(kProperties.call);
  auto* bytes = static_cast<char*>(properties);
  std::memset(bytes, 0, kProperties.bytes);
  copy_text(bytes + kProperties.architecture, 256,
            runtime().options.architecture + ":sramecc+:xnack-");
  return kSuccess;
}
int hipMemGetInfo(size_t* free, size_t* total) {
  ENTER("hipMemGetInfo");
  return runtime().memory_info(free, total);
}
int hipMalloc(void** data, size_t bytes) {
  ENTER("hipMalloc");
  return runtime().allocate(data, bytes, false);
}
int hipFree(void* data) {
  GIVE_BACK("hipFree", runtime().free(data, false));
}
int hipHostMalloc(void** data, size_t bytes, unsigned) {
  ENTER("hipHostMalloc");
  return runtime().allocate(data, bytes, true);
}
int hipHostFree(void* data) {
  GIVE_BACK("hipHostFree", runtime().free(data, true));
}
int hipMemcpyAsync(void* to, const void* from, size_t bytes, int kind, Handle stream) {
  ENTER("hipMemcpyAsync");
  return runtime().copy(to, from, bytes, kind != rbee::rocm::kDeviceToHost,
                        kind != rbee::rocm::kHostToDevice, as<Stream>(stream));
}
int hipMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                       Handle stream) {
  ENTER("hipMemcpyPeerAsync");
  return runtime().copy_peer(to, to_device, from, from_device, bytes, as<Stream>(stream));
}
int hipMemsetAsync(void* data, int value, size_t bytes, Handle stream) {
  ENTER("hipMemsetAsync");
  return runtime().fill(data, value, bytes, as<Stream>(stream));
}
int hipStreamCreateWithFlags(Handle* stream, unsigned) {
  ENTER("hipStreamCreateWithFlags");
  return runtime().create_stream(out(stream));
}
int hipStreamDestroy(Handle stream) {
  GIVE_BACK("hipStreamDestroy", runtime().destroy_stream(as<Stream>(stream)));
}
int hipStreamSynchronize(Handle stream) {
  ENTER("hipStreamSynchronize");
  return runtime().synchronize(as<Stream>(stream));
}
int hipStreamWaitEvent(Handle stream, Handle event, unsigned) {
  ENTER("hipStreamWaitEvent");
  return runtime().wait(as<Stream>(stream), as<Event>(event));
}
int hipEventCreateWithFlags(Handle* event, unsigned) {
  ENTER("hipEventCreateWithFlags");
  return runtime().create_event(out(event));
}
int hipEventDestroy(Handle event) {
  GIVE_BACK("hipEventDestroy", runtime().destroy_event(as<Event>(event)));
}
int hipEventRecord(Handle event, Handle stream) {
  ENTER("hipEventRecord");
  return runtime().record(as<Event>(event), as<Stream>(stream));
}
int hipEventSynchronize(Handle event) {
  ENTER("hipEventSynchronize");
  return runtime().synchronize(as<Event>(event));
}
int hipEventElapsedTime(float* ms, Handle start, Handle end) {
  ENTER("hipEventElapsedTime");
  *ms = static_cast<float>(as<Event>(end)->ms - as<Event>(start)->ms);
  return kSuccess;
}
int hipModuleLoadData(Handle* module, const void* image) {
  ENTER("hipModuleLoadData");
  return runtime().load_module(out(module), image, read_code_object);
}
int hipModuleUnload(Handle module) {
  GIVE_BACK("hipModuleUnload", runtime().unload_module(as<Module>(module)));
}
int hipModuleGetFunction(Handle* kernel, Handle module, const char* name) {
  ENTER("hipModuleGetFunction");
  return runtime().find_kernel(out(kernel), as<Module>(module), name);
}
int hipModuleLaunchKernel(Handle kernel, unsigned x, unsigned y, unsigned z, unsigned threads,
                          unsigned, unsigned, unsigned shared, Handle stream, void** params,
                          void**) {
  ENTER("hipModuleLaunchKernel");
  return runtime().launch(as<Kernel>(kernel), {{x, y, z}, threads, shared}, limits(),
                          as<Stream>(stream), params);
}
int hipStreamBeginCapture(Handle stream, int mode) {
  ENTER("hipStreamBeginCapture");
  return runtime().begin_capture(as<Stream>(stream), mode);
}
int hipStreamEndCapture(Handle stream, Handle* graph) {
  const int status = runtime().enter("hipStreamEndCapture");
  return runtime().end_capture(as<Stream>(stream), status, out(graph));
}
int hipGraphInstantiate(Handle* executable, Handle graph, Handle*, char*, size_t) {
  ENTER("hipGraphInstantiate");
  *executable = graph;
  return runtime().instantiate(as<Graph>(graph));
}
int hipGraphLaunch(Handle graph, Handle stream) {
  ENTER("hipGraphLaunch");
  return runtime().launch_graph(as<Graph>(graph), as<Stream>(stream));
}
int hipGraphExecDestroy(Handle graph) {
  GIVE_BACK("hipGraphExecDestroy", runtime().destroy_graph(as<Graph>(graph)));
}
int hipGraphDestroy(Handle graph) {
  GIVE_BACK("hipGraphDestroy", runtime().destroy_graph(as<Graph>(graph)));
}
}
