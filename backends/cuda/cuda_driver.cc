#include "backends/cuda/cuda_driver.h"

#include <atomic>
#include <utility>

#include "backends/gpu/hiding_variables.h"
#include "rbee/core/error.h"

namespace rbee::cuda {
namespace {

// CUDA 12.0: the oldest driver that has all kernel and graph calls in use.
constexpr int kOldestDriver = 12000;

Handle handle(void* object) {
  return static_cast<Handle>(object);
}

DevicePtr device_ptr(const void* data) {
  return reinterpret_cast<DevicePtr>(data);
}

std::string version_text(int version) {
  return cat(version / 1000, ".", version % 1000 / 10);
}

// An image that the driver rejects leaves the device unchanged.
Code code_of(Status status) {
  switch (status) {
    case kErrorOutOfMemory:
      return Code::out_of_memory;
    case kErrorInvalidImage:
    case kErrorNoBinaryForGpu:
    case kErrorInvalidPtx:
    case kErrorJitCompilerNotFound:
    case kErrorUnsupportedPtxVersion:
    case kErrorJitCompilationDisabled:
    case kErrorSharedObjectInitFailed:
      return Code::unsupported;
    default:
      return Code::device;
  }
}

// The context that this thread made current last; only tests have more than one driver.
struct Current {
  uint64_t driver = 0;
  int ordinal = -1;
};
thread_local Current current;

// The first architecture with the instruction of wait_for_previous_kernel(), in portable.h.
constexpr int kWaitingPtx = 90;

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

int tensor_type(DType dtype) {
  if (dtype == DType::f8e4m3) return kTensorU8;
  return dtype == DType::f16 ? kTensorF16 : kTensorBf16;
}

}  // namespace

CudaDriver::CudaDriver() : id_(next_id()), library_("RBEE_CUDA_LIBRARY", {"libcuda.so.1"}) {
  if (!library_) {
    fail(Code::device, "cuda", "the NVIDIA driver is not installed (", library_.reason(), ")");
  }
#define RB_BIND(name, parameters) library_.bind(fn_.name, #name);
  RB_CUDA_FUNCTIONS(RB_BIND)
#undef RB_BIND
  int version = 0;
  if (fn_.cuDriverGetVersion != nullptr) fn_.cuDriverGetVersion(&version);
  if (version < kOldestDriver || !library_.missing().empty()) {
    fail(Code::device, "cuda", "the NVIDIA driver (", library_.name(), ", CUDA ",
         version_text(version), ") is too old: CUDA ", version_text(kOldestDriver),
         " is needed; update the driver",
         library_.missing().empty() ? "" : cat(" (it lacks ", library_.missing(), ")"));
  }
  const Status status = fn_.cuInit(0);
  int count = 0;
  if (status != kErrorNoDevice) {
    check(status, "cuInit");
    check(fn_.cuDeviceGetCount(&count), "cuDeviceGetCount");
  }
  if (count == 0) {
    const std::string hidden = CudaDriver::hidden_by();
    fail(Code::device, "cuda", "the NVIDIA driver (CUDA ", version_text(version), ") finds no GPU",
         hidden.empty() ? "" : cat(" (", hidden, " may hide it)"));
  }
  contexts_.resize(static_cast<size_t>(count));
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    check(fn_.cuDeviceGet(&handles_.emplace_back(), ordinal), "cuDeviceGet");
  }
}

void CudaDriver::check(Status status, const char* call) const {
  if (status == kSuccess) return;
  const char* name = nullptr;
  const char* text = nullptr;
  fn_.cuGetErrorName(status, &name);
  fn_.cuGetErrorString(status, &text);
  fail(code_of(status), call, name != nullptr ? name : "status", " (", status,
       text != nullptr ? cat(", ", text) : "", ")");
}

std::string CudaDriver::version() const {
  int version = 0;
  check(fn_.cuDriverGetVersion(&version), "cuDriverGetVersion");
  return cat("CUDA driver ", version_text(version));
}

std::string CudaDriver::hidden_by() const {
  return gpu::hiding_variables({"CUDA_VISIBLE_DEVICES"});
}

int CudaDriver::attribute(int ordinal, Attribute which) {
  int value = 0;
  check(fn_.cuDeviceGetAttribute(&value, which, handle_of(ordinal)), "cuDeviceGetAttribute");
  return value;
}

gpu::Properties CudaDriver::properties(int ordinal) {
  gpu::Properties out;
  char name[256] = {};
  check(fn_.cuDeviceGetName(name, sizeof name, handle_of(ordinal)), "cuDeviceGetName");
  out.name = name;
  size_t total = 0;
  check(fn_.cuDeviceTotalMem_v2(&total, handle_of(ordinal)), "cuDeviceTotalMem");
  out.total_memory = static_cast<int64_t>(total);
  const int major = attribute(ordinal, kComputeCapabilityMajor);
  out.architecture = cat("sm_", major, attribute(ordinal, kComputeCapabilityMinor));
  out.matrix = major < 8    ? gpu::MatrixUnit::none
               : major == 9 ? gpu::MatrixUnit::wgmma
                            : gpu::MatrixUnit::mma;
  out.async_copies = major >= 8;
  out.l2_bytes = attribute(ordinal, kL2CacheSize);
  out.multiprocessors = attribute(ordinal, kMultiprocessorCount);
  out.max_threads_per_block = attribute(ordinal, kMaxThreadsPerBlock);
  out.shared_per_block = attribute(ordinal, kMaxSharedMemoryPerBlockOptin);
  return out;
}

Handle CudaDriver::context(int ordinal) {
  const std::scoped_lock lock(mutex_);
  Handle& known = contexts_.at(static_cast<size_t>(ordinal));
  if (known == nullptr) {
    check(fn_.cuDevicePrimaryCtxRetain(&known, handle_of(ordinal)), "cuDevicePrimaryCtxRetain");
  }
  return known;
}

void CudaDriver::use(int ordinal) {
  if (current.driver == id_ && current.ordinal == ordinal) return;
  check(fn_.cuCtxSetCurrent(context(ordinal)), "cuCtxSetCurrent");
  current = {id_, ordinal};
}

void CudaDriver::release(int ordinal) noexcept {
  const std::scoped_lock lock(mutex_);
  Handle& known = contexts_[static_cast<size_t>(ordinal)];
  if (std::exchange(known, nullptr) == nullptr) return;
  if (current.driver == id_ && current.ordinal == ordinal) {
    fn_.cuCtxSetCurrent(nullptr);
    current = {};
  }
  fn_.cuDevicePrimaryCtxRelease_v2(handle_of(ordinal));
}

MemoryInfo CudaDriver::memory() {
  size_t free = 0;
  size_t total = 0;
  check(fn_.cuMemGetInfo_v2(&free, &total), "cuMemGetInfo");
  return {.total = static_cast<int64_t>(total), .free = static_cast<int64_t>(free)};
}

void* CudaDriver::allocate(size_t bytes) {
  DevicePtr data = 0;
  check(fn_.cuMemAlloc_v2(&data, bytes), "cuMemAlloc");
  return reinterpret_cast<void*>(data);  // NOLINT(performance-no-int-to-ptr): the driver's form
}

void CudaDriver::free(void* data) noexcept {
  fn_.cuMemFree_v2(device_ptr(data));
}

void* CudaDriver::allocate_host(size_t bytes) {
  void* data = nullptr;
  check(fn_.cuMemHostAlloc(&data, bytes, 0), "cuMemHostAlloc");
  return data;
}

void CudaDriver::free_host(void* data) noexcept {
  fn_.cuMemFreeHost(data);
}

void CudaDriver::copy(void* to, const void* from, size_t bytes, CopyKind kind, void* stream) {
  switch (kind) {
    case CopyKind::host_to_device:
      return check(fn_.cuMemcpyHtoDAsync_v2(device_ptr(to), from, bytes, handle(stream)),
                   "cuMemcpyHtoDAsync");
    case CopyKind::device_to_host:
      return check(fn_.cuMemcpyDtoHAsync_v2(to, device_ptr(from), bytes, handle(stream)),
                   "cuMemcpyDtoHAsync");
    case CopyKind::device_to_device:
      return check(
          fn_.cuMemcpyDtoDAsync_v2(device_ptr(to), device_ptr(from), bytes, handle(stream)),
          "cuMemcpyDtoDAsync");
  }
}

void CudaDriver::copy_peer(void* to, int to_ordinal, const void* from, int from_ordinal,
                           size_t bytes, void* stream) {
  check(fn_.cuMemcpyPeerAsync(device_ptr(to), context(to_ordinal), device_ptr(from),
                              context(from_ordinal), bytes, handle(stream)),
        "cuMemcpyPeerAsync");
}

void CudaDriver::fill(void* data, uint8_t value, size_t bytes, void* stream) {
  check(fn_.cuMemsetD8Async(device_ptr(data), value, bytes, handle(stream)), "cuMemsetD8Async");
}

void* CudaDriver::create_stream() {
  Handle stream = nullptr;
  check(fn_.cuStreamCreate(&stream, kStreamNonBlocking), "cuStreamCreate");
  return stream;
}

void CudaDriver::destroy_stream(void* stream) noexcept {
  if (stream != nullptr) fn_.cuStreamDestroy_v2(handle(stream));
}

void CudaDriver::synchronize(void* stream) {
  check(fn_.cuStreamSynchronize(handle(stream)), "cuStreamSynchronize");
}

void* CudaDriver::create_event(bool timing) {
  Handle event = nullptr;
  check(fn_.cuEventCreate(&event, timing ? 0 : kEventDisableTiming), "cuEventCreate");
  return event;
}

void CudaDriver::destroy_event(void* event) noexcept {
  if (event != nullptr) fn_.cuEventDestroy_v2(handle(event));
}

void CudaDriver::record_event(void* event, void* stream) {
  check(fn_.cuEventRecord(handle(event), handle(stream)), "cuEventRecord");
}

void CudaDriver::wait_event(void* event, void* stream) {
  check(fn_.cuStreamWaitEvent(handle(stream), handle(event), 0), "cuStreamWaitEvent");
}

void CudaDriver::synchronize_event(void* event) {
  check(fn_.cuEventSynchronize(handle(event)), "cuEventSynchronize");
}

float CudaDriver::elapsed_ms(void* start, void* end) {
  float ms = 0;
  check(fn_.cuEventElapsedTime(&ms, handle(start), handle(end)), "cuEventElapsedTime");
  return ms;
}

void* CudaDriver::load_module(std::span<const std::byte> image) {
  Handle module = nullptr;
  const Status status = fn_.cuModuleLoadData(&module, image.data());
  if (status == kErrorNoBinaryForGpu) {
    fail(Code::unsupported, "cuModuleLoadData",
         "this program has no code for the GPU; it has it for compute "
         "capability " RBEE_CUDA_TARGETS);
  }
  check(status, "cuModuleLoadData");
  return module;
}

void CudaDriver::unload_module(void* module) noexcept {
  fn_.cuModuleUnload(handle(module));
}

void* CudaDriver::find_kernel(void* module, const char* name) {
  Handle kernel = nullptr;
  const Status status = fn_.cuModuleGetFunction(&kernel, handle(module), name);
  if (status == kErrorNotFound) return nullptr;
  check(status, "cuModuleGetFunction");
  return kernel;
}

bool CudaDriver::waits_itself(void* kernel) {
  // The architecture that the code was compiled for, on any card: later cards may run PTX of
  // earlier ones, which has no such instruction.
  int ptx = 0;
  check(fn_.cuFuncGetAttribute(&ptx, kFuncPtxVersion, handle(kernel)), "cuFuncGetAttribute");
  return ptx >= kWaitingPtx;
}

void CudaDriver::allow_shared(void* kernel, size_t bytes) {
  check(fn_.cuFuncSetAttribute(handle(kernel), kFuncMaxDynamicShared, static_cast<int>(bytes)),
        "cuFuncSetAttribute");
}

void CudaDriver::launch(const gpu::KernelLaunch& what, void* stream, const void* params) {
  void* arguments[] = {const_cast<void*>(params)};  // it only reads them
  // Overlapping kernels stay in order because each waits for the one in front (RB_KERNEL).
  const LaunchAttribute overlap{.id = kProgrammaticSerialization, .padding = 0, .value = {1}};
  const LaunchConfig config{.grid_x = what.grid.x,
                            .grid_y = what.grid.y,
                            .grid_z = what.grid.z,
                            .block_x = what.threads,
                            .block_y = 1,
                            .block_z = 1,
                            .shared_bytes = what.shared_bytes,
                            .stream = handle(stream),
                            .attributes = &overlap,
                            .attribute_count = what.overlap ? 1u : 0u};
  check(fn_.cuLaunchKernelEx(&config, handle(what.kernel), arguments, nullptr), "cuLaunchKernelEx");
}

void CudaDriver::begin_capture(void* stream) {
  check(fn_.cuStreamBeginCapture_v2(handle(stream), kCaptureRelaxed), "cuStreamBeginCapture");
}

void* CudaDriver::end_capture(void* stream) {
  Handle graph = nullptr;
  check(fn_.cuStreamEndCapture(handle(stream), &graph), "cuStreamEndCapture");
  Handle executable = nullptr;
  const Status status = fn_.cuGraphInstantiateWithFlags(&executable, graph, 0);
  fn_.cuGraphDestroy(graph);
  check(status, "cuGraphInstantiate");
  return executable;
}

void CudaDriver::launch_graph(void* graph, void* stream) {
  check(fn_.cuGraphLaunch(handle(graph), handle(stream)), "cuGraphLaunch");
}

void CudaDriver::destroy_graph(void* graph) noexcept {
  fn_.cuGraphExecDestroy(handle(graph));
}

shared::TensorMap CudaDriver::tensor_map(const TensorMapTiles& tiles) {
  constexpr std::array<unsigned, 4> kEach{1, 1, 1, 1};
  const int swizzle = tiles.swizzled ? kSwizzle128 : kNoSwizzle;
  const int promote = tiles.swizzled ? kPromoteTo256 : kPromoteTo128;
  shared::TensorMap map;
  check(fn_.cuTensorMapEncodeTiled(&map, tensor_type(tiles.dtype), tiles.sizes.size(),
                                   const_cast<void*>(tiles.data), tiles.sizes.data(),
                                   tiles.strides.data(), tiles.box.data(), kEach.data(),
                                   kNoInterleave, swizzle, promote, kZerosOutside),
        "cuTensorMapEncodeTiled");
  return map;
}

shared::TensorMap CudaDriver::tensor_map(const TensorPixels& pixels) {
  const std::array<unsigned, 4> each{1, pixels.stride, pixels.stride, 1};
  shared::TensorMap map;
  check(fn_.cuTensorMapEncodeIm2col(&map, tensor_type(pixels.dtype), pixels.sizes.size(),
                                    const_cast<void*>(pixels.data), pixels.sizes.data(),
                                    pixels.strides.data(), pixels.lower.data(), pixels.upper.data(),
                                    pixels.channels, pixels.pixels, each.data(), kNoInterleave,
                                    kSwizzle128, kPromoteTo256, kZerosOutside),
        "cuTensorMapEncodeIm2col");
  return map;
}

}  // namespace rbee::cuda
