#include "backends/rocm/hip_driver.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <limits>
#include <vector>

#include "backends/gpu/hiding_variables.h"
#include "backends/rocm/known_devices.h"
#include "rbee/core/error.h"

namespace rbee::rocm {
namespace {

Handle handle(void* object) {
  return static_cast<Handle>(object);
}

std::string version_text(int version) {
  return cat(version / 10000000, ".", version % 10000000 / 100000);
}

// With its last part, by which releases of one minor version differ.
std::string whole_version_text(int version) {
  return cat(version_text(version), ".", version % 100000);
}

// An image that the runtime does not take leaves the device as it was.
Code code_of(Status status) {
  switch (status) {
    case kErrorOutOfMemory:
      return Code::out_of_memory;
    case kErrorInvalidImage:
    case kErrorNoBinaryForGpu:
    case kErrorInvalidKernelFile:
    case kErrorSharedObjectInitFailed:
      return Code::unsupported;
    default:
      return Code::device;
  }
}

struct Current {
  uint64_t driver = 0;
  int ordinal = -1;
};
thread_local Current current;

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

std::string why_no_gpu(const char* kfd) {
  const int file = open(kfd, O_RDWR | O_CLOEXEC);
  if (file < 0) {
    if (errno == ENOENT) {
      return cat("there is no ", kfd, ": load the amdgpu driver, or give it to the container");
    }
    return cat("this user may not open ", kfd, ", which the groups render and video may");
  }
  close(file);
  return "is the runtime older than the card, or may this user not open /dev/dri/renderD*?";
}

// AMD's packages do not tell the loader of their folders: /opt/rocm/lib, and from ROCm 7.13 on
// /opt/rocm/core/lib.
HipDriver::HipDriver()
    : id_(next_id()),
      library_(
          "RBEE_HIP_LIBRARY",
          {"libamdhip64.so.7", "libamdhip64.so.10", "libamdhip64.so.6", "libamdhip64.so.5",
           "libamdhip64.so", "/opt/rocm/lib/libamdhip64.so.7", "/opt/rocm/lib/libamdhip64.so.10",
           "/opt/rocm/lib/libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so.5",
           "/opt/rocm/lib/libamdhip64.so", "/opt/rocm/core/lib/libamdhip64.so.10",
           "/opt/rocm/core/lib/libamdhip64.so.7", "/opt/rocm/core/lib/libamdhip64.so"}) {
  if (!library_) {
    fail(Code::device, "rocm", "AMD's HIP runtime (libamdhip64.so) is not installed (",
         library_.reason(), ")");
  }
#define RB_BIND(name, parameters) library_.bind(fn_.name, #name);
  RB_HIP_FUNCTIONS(RB_BIND)
#undef RB_BIND
  if (fn_.hipRuntimeGetVersion != nullptr) fn_.hipRuntimeGetVersion(&version_);
  layout_ = version_ >= hip_version(6, 0) ? kPropertiesSince6 : kPropertiesBefore6;
  library_.bind(fill_properties_, layout_.call);
  if (version_ < kOldestRuntime || !library_.missing().empty()) {
    fail(Code::device, "rocm", "the HIP runtime (", library_.name(), ", version ",
         whole_version_text(version_), ") is too old: ", whole_version_text(kOldestRuntime),
         " (ROCm 5.2.3) is needed; update ROCm",
         library_.missing().empty() ? "" : cat(" (it lacks ", library_.missing(), ")"));
  }
  // HIP 5's hipInit says kErrorInvalidDevice where there is none.
  const auto there = [&](Status status, const char* call) {
    if (status == kErrorNoDevice || status == kErrorInvalidDevice) return false;
    check(status, call);
    return true;
  };
  if (!there(fn_.hipInit(0), "hipInit") ||
      !there(fn_.hipGetDeviceCount(&device_count_), "hipGetDeviceCount") || device_count_ == 0) {
    const std::string hidden = HipDriver::hidden_by();
    fail(Code::device, "rocm", "the HIP runtime ", version_text(version_), " finds no GPU (",
         hidden.empty() ? "" : cat(hidden, " may hide it; "), why_no_gpu("/dev/kfd"), ")");
  }
}

void HipDriver::check(Status status, const char* call) const {
  if (status == kSuccess) return;
  fail(code_of(status), call, fn_.hipGetErrorName(status), " (", status, ", ",
       fn_.hipGetErrorString(status), ")");
}

std::string HipDriver::version() const {
  return cat("HIP runtime ", version_text(version_));
}

std::string HipDriver::hidden_by() const {
  return gpu::hiding_variables({"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"});
}

int HipDriver::attribute(int ordinal, Attribute which) {
  int value = 0;
  check(fn_.hipDeviceGetAttribute(&value, which, ordinal), "hipDeviceGetAttribute");
  return value;
}

std::string HipDriver::architecture(int ordinal) {
  // Room for what later minor versions may append.
  std::vector<char> properties(layout_.bytes + 4096);
  check(fill_properties_(properties.data(), ordinal), layout_.call);
  const std::string full = properties.data() + layout_.architecture;
  return full.substr(0, full.find(':'));  // "gfx90a:sramecc+:xnack-"
}

gpu::Properties HipDriver::properties(int ordinal) {
  gpu::Properties out;
  char name[256] = {};
  check(fn_.hipDeviceGetName(name, sizeof name, ordinal), "hipDeviceGetName");
  out.name = name;
  out.architecture = architecture(ordinal);
  out.matrix = matrix_unit(out.architecture);
  out.integrated = is_integrated(out.architecture);
  size_t total = 0;
  check(fn_.hipDeviceTotalMem(&total, ordinal), "hipDeviceTotalMem");
  out.total_memory = static_cast<int64_t>(total);
  out.l2_bytes = attribute(ordinal, kL2CacheSize);
  out.lane_count = attribute(ordinal, kWarpSize);
  out.multiprocessors = compute_units(out.architecture, attribute(ordinal, kMultiprocessorCount));
  out.max_threads_per_block = attribute(ordinal, kMaxThreadsPerBlock);
  out.shared_per_block = attribute(ordinal, kMaxSharedMemoryPerBlock);
  out.capture_fault = known_capture_fault(version_, out.architecture);
  return out;
}

void HipDriver::use(int ordinal) {
  if (current.driver == id_ && current.ordinal == ordinal) return;
  check(fn_.hipSetDevice(ordinal), "hipSetDevice");
  current = {id_, ordinal};
}

MemoryInfo HipDriver::memory() {
  size_t free = 0;
  size_t total = 0;
  check(fn_.hipMemGetInfo(&free, &total), "hipMemGetInfo");
  return {.total = static_cast<int64_t>(total), .free = static_cast<int64_t>(free)};
}

void* HipDriver::allocate(size_t bytes) {
  void* data = nullptr;
  check(fn_.hipMalloc(&data, bytes), "hipMalloc");
  return data;
}

void HipDriver::free(void* data) noexcept {
  fn_.hipFree(data);
}

void* HipDriver::allocate_host(size_t bytes) {
  void* data = nullptr;
  check(fn_.hipHostMalloc(&data, bytes, 0), "hipHostMalloc");
  return data;
}

void HipDriver::free_host(void* data) noexcept {
  fn_.hipHostFree(data);
}

void HipDriver::copy(void* to, const void* from, size_t bytes, CopyKind kind, void* stream) {
  const MemcpyKind direction = kind == CopyKind::host_to_device   ? kHostToDevice
                               : kind == CopyKind::device_to_host ? kDeviceToHost
                                                                  : kDeviceToDevice;
  check(fn_.hipMemcpyAsync(to, from, bytes, direction, handle(stream)), "hipMemcpyAsync");
}

void HipDriver::copy_peer(void* to, int to_ordinal, const void* from, int from_ordinal,
                          size_t bytes, void* stream) {
  check(fn_.hipMemcpyPeerAsync(to, to_ordinal, from, from_ordinal, bytes, handle(stream)),
        "hipMemcpyPeerAsync");
}

void HipDriver::fill(void* data, uint8_t value, size_t bytes, void* stream) {
  check(fn_.hipMemsetAsync(data, value, bytes, handle(stream)), "hipMemsetAsync");
}

void* HipDriver::create_stream() {
  Handle stream = nullptr;
  check(fn_.hipStreamCreateWithFlags(&stream, kStreamNonBlocking), "hipStreamCreateWithFlags");
  return stream;
}

void HipDriver::destroy_stream(void* stream) noexcept {
  if (stream != nullptr) fn_.hipStreamDestroy(handle(stream));
}

void HipDriver::synchronize(void* stream) {
  check(fn_.hipStreamSynchronize(handle(stream)), "hipStreamSynchronize");
}

void* HipDriver::create_event(bool timing) {
  Handle event = nullptr;
  check(fn_.hipEventCreateWithFlags(&event, timing ? 0 : kEventDisableTiming),
        "hipEventCreateWithFlags");
  return event;
}

void HipDriver::destroy_event(void* event) noexcept {
  if (event != nullptr) fn_.hipEventDestroy(handle(event));
}

void HipDriver::record_event(void* event, void* stream) {
  check(fn_.hipEventRecord(handle(event), handle(stream)), "hipEventRecord");
}

void HipDriver::wait_event(void* event, void* stream) {
  check(fn_.hipStreamWaitEvent(handle(stream), handle(event), 0), "hipStreamWaitEvent");
}

void HipDriver::synchronize_event(void* event) {
  check(fn_.hipEventSynchronize(handle(event)), "hipEventSynchronize");
}

float HipDriver::elapsed_ms(void* start, void* end) {
  float ms = 0;
  check(fn_.hipEventElapsedTime(&ms, handle(start), handle(end)), "hipEventElapsedTime");
  return ms;
}

void* HipDriver::load_module(std::span<const std::byte> image) {
  Handle module = nullptr;
  check(fn_.hipModuleLoadData(&module, image.data()), "hipModuleLoadData");
  return module;
}

void HipDriver::unload_module(void* module) noexcept {
  fn_.hipModuleUnload(handle(module));
}

void* HipDriver::find_kernel(void* module, const char* name) {
  Handle kernel = nullptr;
  const Status status = fn_.hipModuleGetFunction(&kernel, handle(module), name);
  if (status == kErrorNotFound) return nullptr;
  check(status, "hipModuleGetFunction");
  return kernel;
}

void HipDriver::allow_shared(void*, size_t) {
}  // AMD devices have no opt-in above their usual limit

void HipDriver::launch(const gpu::KernelLaunch& what, void* stream, const void* params) {
  // HIP counts them so along each axis, and takes such a launch for a fault of the device.
  const uint64_t threads = uint64_t{what.grid.x} * what.threads;
  if (threads > std::numeric_limits<uint32_t>::max()) {
    fail(Code::unsupported, "hipModuleLaunchKernel", threads, " threads are 2^32 and more");
  }
  void* arguments[] = {const_cast<void*>(params)};  // it reads them only
  check(fn_.hipModuleLaunchKernel(handle(what.kernel), what.grid.x, what.grid.y, what.grid.z,
                                  what.threads, 1, 1, what.shared_bytes, handle(stream), arguments,
                                  nullptr),
        "hipModuleLaunchKernel");
}

void HipDriver::begin_capture(void* stream) {
  check(fn_.hipStreamBeginCapture(handle(stream), kCaptureRelaxed), "hipStreamBeginCapture");
}

void* HipDriver::end_capture(void* stream) {
  Handle graph = nullptr;
  check(fn_.hipStreamEndCapture(handle(stream), &graph), "hipStreamEndCapture");
  Handle executable = nullptr;
  const Status status = fn_.hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0);
  fn_.hipGraphDestroy(graph);
  check(status, "hipGraphInstantiate");
  return executable;
}

void HipDriver::launch_graph(void* graph, void* stream) {
  check(fn_.hipGraphLaunch(handle(graph), handle(stream)), "hipGraphLaunch");
}

void HipDriver::destroy_graph(void* graph) noexcept {
  fn_.hipGraphExecDestroy(handle(graph));
}

}  // namespace rbee::rocm
