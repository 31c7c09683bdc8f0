#include "backends/metal/metal_driver.h"

#include <algorithm>

#include "backends/metal/core_count.h"
#include "backends/metal/metal_text.h"
#include "rbee/core/error.h"

namespace rbee::metal {
namespace {

constexpr uint64_t kMostParams = 4096;  // of setBytes:length:atIndex:
constexpr int kLanes = 32;              // of a simdgroup, of every Apple GPU
// Where the registry does not tell the number of cores; base models have 7 to 10.
constexpr int kUsualCores = 8;

struct Module {
  FamilyText text;
  std::map<std::string, std::unique_ptr<Kernel>, std::less<>> kernels;
};

MetalStream& stream_of(void* stream) {
  return *static_cast<MetalStream*>(stream);
}

MetalEvent& event_of(void* event) {
  return *static_cast<MetalEvent*>(event);
}

}  // namespace

MetalDriver::MetalDriver() {
  const AutoreleasePool pool(objc_);
  const Retained all = Retained::owned(objc_, objc_.copy_devices());
  const uint64_t count = objc_.send<MetalMessage::array_count>(all.get());
  std::string others;
  for (uint64_t i = 0; i < count && !device_; ++i) {
    Id device = objc_.send<MetalMessage::array_at>(all.get(), i);
    if (objc_.send<MetalMessage::supports_family>(device, kFamilyApple7)) {
      device_ = Retained::shared(objc_, device);
    } else {
      others += cat(others.empty() ? "" : ", ",
                    objc_.text(objc_.send<MetalMessage::device_name>(device)));
    }
  }
  if (!device_) {
    fail(Code::device, "metal", "Metal finds no GPU of Apple's, M1 or later (",
         others.empty() ? "it finds none at all" : others, ")");
  }
  if (!objc_.send<MetalMessage::supports_family>(device_.get(), kFamilyMetal3)) {
    fail(Code::device, "metal", "macOS 13 is needed; this is ", version());
  }
  most_shared_ = objc_.send<MetalMessage::max_threadgroup_memory>(device_.get());
  most_bytes_ = objc_.send<MetalMessage::max_buffer_length>(device_.get());
  working_set_ = objc_.send<MetalMessage::working_set_size>(device_.get());
  buffers_ = std::make_unique<Buffers>(objc_);
  const std::string name = objc_.text(objc_.send<MetalMessage::device_name>(device_.get()));
  pipelines_ = std::make_unique<PipelineCache>(objc_, device_.get(), cat(name, ", ", version()));
}

MetalDriver::~MetalDriver() = default;

std::string MetalDriver::version() const {
  const AutoreleasePool pool(objc_);
  Id info = objc_.send<MetalMessage::process_info>(objc_.class_named("NSProcessInfo"));
  return cat("Metal 3, macOS ", objc_.text(objc_.send<MetalMessage::system_version>(info)));
}

gpu::Properties MetalDriver::properties(int) {
  const AutoreleasePool pool(objc_);
  gpu::Properties out;
  out.name = objc_.text(objc_.send<MetalMessage::device_name>(device_.get()));
  int64_t family = kFamilyApple7;
  while (family < kFamilyApple10 &&
         objc_.send<MetalMessage::supports_family>(device_.get(), family + 1)) {
    ++family;
  }
  out.architecture = cat("apple", family - kFamilyApple7 + 7);
  out.total_memory = static_cast<int64_t>(working_set_);
  out.lane_count = kLanes;
  const int cores = core_count();
  if (cores > 0) out.name += cat(" with ", cores, " cores");
  out.multiprocessors = cores > 0 ? cores : kUsualCores;
  out.shared_per_block = static_cast<int64_t>(most_shared_);
  out.integrated = true;
  out.device_fences = false;  // kLanguage3_0 has none
  return out;
}

MemoryInfo MetalDriver::memory() {
  const auto total = static_cast<int64_t>(working_set_);
  const auto used = static_cast<int64_t>(objc_.send<MetalMessage::allocated_size>(device_.get()));
  return {.total = total, .free = std::max<int64_t>(total - used, 0)};
}

Retained MetalDriver::make_buffer(size_t bytes) {
  constexpr const char* kCall = selector_of(MetalMessage::new_buffer);
  if (bytes > most_bytes_) {
    fail(Code::out_of_memory, kCall, bytes, " bytes, and a buffer has ", most_bytes_, " at most");
  }
  const AutoreleasePool pool(objc_);
  const int64_t free = memory().free;
  // Metal gives more than it can keep resident, and then command buffers fail.
  if (bytes > static_cast<uint64_t>(free)) {
    fail(Code::out_of_memory, kCall, bytes, " bytes, and ", free, " are free");
  }
  Id made = objc_.send<MetalMessage::new_buffer>(device_.get(), std::max<size_t>(bytes, 16),
                                                 kStorageModeShared);
  if (made == nullptr) fail(Code::out_of_memory, kCall, bytes, " bytes were refused");
  return Retained::owned(objc_, made);
}

void* MetalDriver::allocate(size_t bytes) {
  return buffers_->add_device(make_buffer(bytes), bytes);
}

void MetalDriver::free(void* data) noexcept {
  // First no kernel can reach it any more, then those that can end.
  const Retained buffer = buffers_->take_device(data);
  finish_all();
}

void* MetalDriver::allocate_host(size_t bytes) {
  return buffers_->add_host(make_buffer(bytes), bytes);
}

void MetalDriver::free_host(void* data) noexcept {
  const Retained buffer = buffers_->take_host(data);
  finish_all();
}

void MetalDriver::finish_all() noexcept {
  const std::scoped_lock lock(streams_mutex_);
  for (MetalStream* stream : streams_) stream->finish();
}

void MetalDriver::copy(void* to, const void* from, size_t bytes, CopyKind kind, void* stream) {
  stream_of(stream).copy(to, from, bytes, kind);
}

void MetalDriver::copy_peer(void*, int, const void*, int, size_t, void*) {
  fail(Code::unsupported, "copy_peer", "a Mac has one GPU");
}

void MetalDriver::fill(void* data, uint8_t value, size_t bytes, void* stream) {
  stream_of(stream).fill(data, value, bytes);
}

void* MetalDriver::create_stream() {
  const AutoreleasePool pool(objc_);
  auto made = std::make_unique<MetalStream>(objc_, device_.get(), *buffers_);
  const std::scoped_lock lock(streams_mutex_);
  streams_.insert(made.get());
  return made.release();
}

void MetalDriver::destroy_stream(void* stream) noexcept {
  const std::unique_ptr<MetalStream> own(static_cast<MetalStream*>(stream));
  const std::scoped_lock lock(streams_mutex_);
  streams_.erase(own.get());
}

void MetalDriver::synchronize(void* stream) {
  stream_of(stream).synchronize();
}

void* MetalDriver::create_event(bool) {
  Id made = objc_.send<MetalMessage::new_shared_event>(device_.get());
  if (made == nullptr) fail(Code::device, "newSharedEvent", "the device gives no event");
  return new MetalEvent{.event = Retained::owned(objc_, made), .commands = {}};
}

void MetalDriver::destroy_event(void* event) noexcept {
  // Streams keep what their commands name.
  delete static_cast<MetalEvent*>(event);
}

void MetalDriver::record_event(void* event, void* stream) {
  stream_of(stream).record(event_of(event));
}

void MetalDriver::wait_event(void* event, void* stream) {
  stream_of(stream).wait(event_of(event));
}

void MetalDriver::synchronize_event(void* event) {
  const MetalEvent& of = event_of(event);
  if (of.captured_by != nullptr)
    fail(Code::device, "waitUntilCompleted", "the event is of a capture");
  if (!of.commands) return;
  const AutoreleasePool pool(objc_);
  objc_.send<MetalMessage::wait_until_completed>(of.commands.get());
  if (objc_.send<MetalMessage::status>(of.commands.get()) != kStatusError) return;
  fail(Code::device, "command buffer",
       objc_.error_text(objc_.send<MetalMessage::error>(of.commands.get())));
}

float MetalDriver::elapsed_ms(void* start, void* end) {
  synchronize_event(start);
  synchronize_event(end);
  const auto seconds = [&](void* event) {
    return objc_.send<MetalMessage::gpu_end_time>(event_of(event).commands.get());
  };
  return static_cast<float>((seconds(end) - seconds(start)) * 1000);
}

void* MetalDriver::load_module(std::span<const std::byte> image) {
  return new Module{.text = FamilyText(image), .kernels = {}};
}

void MetalDriver::unload_module(void* module) noexcept {
  finish_all();
  delete static_cast<Module*>(module);
}

void* MetalDriver::find_kernel(void* module, const char* name) {
  auto& of = *static_cast<Module*>(module);
  if (const auto known = of.kernels.find(name); known != of.kernels.end()) {
    return known->second.get();
  }
  const std::string source = of.text.source_of(name);
  if (source.empty()) return nullptr;
  const AutoreleasePool pool(objc_);
  auto kernel = std::make_unique<Kernel>();
  kernel->name = name;
  const Retained options = Retained::owned(
      objc_, objc_.send<MetalMessage::new_options>(objc_.class_named("MTLCompileOptions")));
  objc_.send<MetalMessage::set_language>(options.get(), kLanguage3_0);
  objc_.send<MetalMessage::set_fast_math>(options.get(), false);
  Id error = nullptr;
  const auto refuse = [&](MetalMessage call) {
    fail(Code::unsupported, selector_of(call), name, ": ", objc_.error_text(error));
  };
  kernel->library = Retained::owned(
      objc_, objc_.send<MetalMessage::new_library>(device_.get(), objc_.string(source.c_str()),
                                                   options.get(), &error));
  if (!kernel->library) refuse(MetalMessage::new_library);
  const Retained function = Retained::owned(
      objc_, objc_.send<MetalMessage::new_function>(kernel->library.get(), objc_.string(name)));
  if (!function) refuse(MetalMessage::new_function);
  kernel->pipeline = pipelines_->pipeline(function.get(), name, source, &error);
  Id pipeline = kernel->pipeline.get();
  if (pipeline == nullptr) refuse(MetalMessage::new_pipeline);
  kernel->most_threads = objc_.send<MetalMessage::max_threads>(pipeline);
  kernel->static_bytes = objc_.send<MetalMessage::static_memory>(pipeline);
  const uint64_t lanes = objc_.send<MetalMessage::execution_width>(pipeline);
  if (lanes != kLanes) {
    fail(Code::unsupported, name, "simdgroups have ", lanes, " threads here, not ", kLanes);
  }
  return of.kernels.emplace(name, std::move(kernel)).first->second.get();
}

void MetalDriver::allow_shared(void* kernel, size_t bytes) {
  const auto& of = *static_cast<const Kernel*>(kernel);
  if (of.static_bytes + bytes <= most_shared_) return;
  fail(Code::unsupported, of.name, of.static_bytes, " + ", bytes,
       " bytes of threadgroup memory, and there are ", most_shared_);
}

void MetalDriver::launch(const gpu::KernelLaunch& what, void* stream, const void* params) {
  const auto& kernel = *static_cast<const Kernel*>(what.kernel);
  if (what.threads == 0 || what.threads > kernel.most_threads) {
    fail(Code::unsupported, selector_of(MetalMessage::dispatch), what.threads,
         " threads in a threadgroup, and the pipeline takes ", kernel.most_threads);
  }
  if (what.params_bytes == 0 || what.params_bytes > kMostParams) {
    fail(Code::internal, selector_of(MetalMessage::set_bytes), what.params_bytes,
         " bytes of parameters, of 1 to ", kMostParams);
  }
  allow_shared(what.kernel, (size_t{what.shared_bytes} + 15) / 16 * 16);
  const auto* bytes = static_cast<const std::byte*>(params);
  stream_of(stream).launch({.kernel = &kernel,
                            .grid = what.grid,
                            .threads = what.threads,
                            .shared_bytes = what.shared_bytes,
                            .params = {bytes, bytes + what.params_bytes}});
}

void MetalDriver::begin_capture(void* stream) {
  stream_of(stream).begin_capture();
}

void* MetalDriver::end_capture(void* stream) {
  return new Capture(stream_of(stream).end_capture());
}

void MetalDriver::launch_graph(void* graph, void* stream) {
  stream_of(stream).replay(*static_cast<const Capture*>(graph));
}

void MetalDriver::destroy_graph(void* graph) noexcept {
  delete static_cast<Capture*>(graph);
}

}  // namespace rbee::metal
