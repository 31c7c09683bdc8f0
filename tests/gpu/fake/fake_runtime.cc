#include "tests/gpu/fake/fake_runtime.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace rbee::fake {
namespace {

constexpr size_t kAlignment = 256;
constexpr uint8_t kNobody = 0xcd;  // fills padding and fresh memory
constexpr uint32_t kMostThreads = 1024;
thread_local uint32_t told_params = 0;  // bytes of the next launch's parameter; 0: unknown
thread_local int current_device = kDeviceOfNewThreads;

int64_t environment(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoll(text) : fallback;
}

// Padding between allocations lets a sanitizer or block_around() see a write past the end.
size_t padded(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment + kAlignment;
}

}  // namespace

const char* status_text(int status) {
  switch (status) {
    case kOutOfMemory:
      return "out of memory";
    case kInvalidImage:
      return "device kernel image is invalid";
    default:
      return "unknown error";
  }
}

Runtime& Runtime::instance() {
  static auto* const runtime = new Runtime;
  return *runtime;
}

void Runtime::reset() {
  const std::scoped_lock lock(mutex_);
  for (auto& [address, block] : blocks_) {
    std::free(reinterpret_cast<void*>(address));  // NOLINT(performance-no-int-to-ptr): ordered keys
  }
  blocks_.clear();
  for (Stream* stream : streams_) delete stream;
  streams_.clear();
  for (Event* event : events_) delete event;
  events_.clear();
  for (Module* module : modules_) delete module;
  modules_.clear();
  kernels_.clear();
  for (Graph* graph : graphs_) delete graph;
  graphs_.clear();
  captures_.clear();
  calls_.clear();
  injections_.clear();
  violation_.clear();
  launches_ = 0;
  sticky_ = kSuccess;
  options = {};
  if (const char* name = std::getenv("RBEE_FAKE_ARCH")) options.architecture = name;
  options.lanes = static_cast<int>(
      environment("RBEE_FAKE_LANES", options.architecture.starts_with("gfx9") ? 64 : 32));
  options.count = static_cast<int>(environment("RBEE_FAKE_DEVICES", options.count));
  options.memory = environment("RBEE_FAKE_MEMORY_MIB", options.memory >> 20) << 20;
  const char* lost_file = std::getenv("RBEE_FAKE_LOST");
  lost_file_ = lost_file != nullptr ? lost_file : "";
  const char* modules_file = std::getenv("RBEE_FAKE_MODULES");
  modules_file_ = modules_file != nullptr ? modules_file : "";
  const char* shared = std::getenv("RBEE_FAKE_SHARED");
  shared_use_ = shared != nullptr ? std::make_unique<SharedUse>(shared) : nullptr;
  fill_ = static_cast<int>(environment("RBEE_FAKE_FILL", kNobody));
  if (const char* failing = std::getenv("RBEE_FAKE_FAIL")) {
    std::istringstream text(failing);
    std::string call;
    int nth = 0;
    int status = kSuccess;
    text >> call >> nth >> status;
    injections_[call] = {.countdown = nth, .status = status, .then = Then::goes_on};
  }
  if (const char* fatal = std::getenv("RBEE_FAKE_FATAL")) {
    std::istringstream(fatal) >> fatal_kernel_ >> fatal_end_;
  }
  const char* fault_file = std::getenv("RBEE_FAKE_FAULT");
  fault_file_ = fault_file != nullptr ? fault_file : "";
  uploads_.clear();
  const char* fault = std::getenv("RBEE_FAKE_GRAPHS");
  graph_fault_ = fault != nullptr ? fault : "";
  const char* mistakes_file = std::getenv("RBEE_FAKE_MISTAKES");
  mistakes_file_ = mistakes_file != nullptr ? mistakes_file : "";
}

int Runtime::version(int usual) {
  return static_cast<int>(environment("RBEE_FAKE_VERSION", usual));
}

void Runtime::violate(const std::string& what) {
  const std::scoped_lock lock(mutex_);
  if (violation_.empty()) violation_ = what;
  if (!mistakes_file_.empty()) std::ofstream(mistakes_file_, std::ios::app) << what << '\n';
}

void Runtime::fail(const std::string& call, int nth, int status, Then then) {
  const std::scoped_lock lock(mutex_);
  injections_[call] = {.countdown = nth, .status = status, .then = then};
}

int Runtime::enter(const char* call) {
  const std::scoped_lock lock(mutex_);
  ++calls_[call];
  if (!lost_file_.empty() && access(lost_file_.c_str(), F_OK) == 0) sticky_ = kLaunchFailed;
  if (sticky_ != kSuccess) return sticky_;
  const auto found = injections_.find(call);
  if (found == injections_.end() || --found->second.countdown > 0) return kSuccess;
  const Injection injection = found->second;
  if (injection.then != Then::again) injections_.erase(found);
  if (injection.then == Then::lost || injection.then == Then::lost_later) {
    sticky_ = injection.status;
  }
  return injection.then == Then::lost_later ? kSuccess : injection.status;
}

void Runtime::tell_params(uint32_t bytes) {
  told_params = bytes;
}

int Runtime::set_device(int device) {
  if (device < 0 || device >= options.count) return kInvalidDevice;
  current_device = device;
  return kSuccess;
}

int Runtime::leave_device() {
  current_device = kDeviceOfNewThreads;
  return kSuccess;
}

int Runtime::enter_with_device(const char* call) {
  const int status = enter(call);
  if (status != kSuccess || current_device >= 0) return status;
  const std::scoped_lock lock(mutex_);
  violate(std::string(call) + " by a thread that made no device current");
  return kInvalidContext;
}

bool Runtime::on_device(int device, const char* what) {
  if (device == current_device) return true;
  violate(std::string(what) + " on device " + std::to_string(device) + " while " +
          std::to_string(current_device) + " is current");
  return false;
}

int Runtime::allocate(void** data, size_t bytes, bool host) {
  const std::scoped_lock lock(mutex_);
  if (const int status = outside_captures("allocation")) return status;
  const auto wanted = static_cast<int64_t>(bytes);
  if (!host && used_bytes() + wanted > options.memory) return kOutOfMemory;
  *data = std::aligned_alloc(kAlignment, padded(bytes));
  if (*data == nullptr) return kOutOfMemory;
  std::memset(*data, kNobody, padded(bytes));  // callers must not rely on zeros
  std::memset(*data, fill_, bytes);
  if (!host && shared_use_ != nullptr) shared_use_->bytes() += wanted;
  blocks_[reinterpret_cast<uintptr_t>(*data)] = {
      .bytes = bytes, .host = host, .device = current_device};
  return kSuccess;
}

int Runtime::free(void* data, bool host) {
  const std::scoped_lock lock(mutex_);
  if (data == nullptr) return kSuccess;
  if (const int status = outside_captures("free")) return status;
  const auto found = blocks_.find(reinterpret_cast<uintptr_t>(data));
  if (found == blocks_.end() || found->second.host != host) {
    violate("free of memory that is not allocated");
    return kInvalidValue;
  }
  const auto* tail = static_cast<const uint8_t*>(data) + found->second.bytes;
  const auto* end = static_cast<const uint8_t*>(data) + padded(found->second.bytes);
  for (; tail < end; ++tail) {
    if (*tail != kNobody) violate("something was written past the end of an allocation");
  }
  if (!host && shared_use_ != nullptr) {
    shared_use_->bytes() -= static_cast<int64_t>(found->second.bytes);
  }
  blocks_.erase(found);
  uploads_.clear();
  std::free(data);
  return kSuccess;
}

int64_t Runtime::live_bytes() const {
  const std::scoped_lock lock(mutex_);
  int64_t bytes = 0;
  for (const auto& [address, block] : blocks_) {
    if (!block.host) bytes += static_cast<int64_t>(block.bytes);
  }
  return bytes;
}

std::string Runtime::live_objects() const {
  const std::scoped_lock lock(mutex_);
  const auto host = std::ranges::count_if(blocks_, [](const auto& b) { return b.second.host; });
  std::string out;
  const auto add = [&](size_t count, const char* what) {
    if (count == 0) return;
    out += (out.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  };
  add(streams_.size(), "streams");
  add(events_.size(), "events");
  add(modules_.size(), "modules");
  add(graphs_.size(), "graphs");
  add(captures_.size(), "captures");
  add(static_cast<size_t>(host), "pieces of host memory");
  return out;
}

int64_t Runtime::used_bytes() const {
  return shared_use_ != nullptr ? shared_use_->bytes().load() : live_bytes();
}

int Runtime::memory_info(size_t* free, size_t* total) {
  *total = static_cast<size_t>(options.memory);
  *free = static_cast<size_t>(std::max<int64_t>(options.memory - used_bytes(), 0));
  return kSuccess;
}

Runtime::Block* Runtime::block_around(const void* data, size_t bytes, const char* what) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  auto after = blocks_.upper_bound(address);
  if (after != blocks_.begin()) {
    --after;
    if (address + bytes <= after->first + after->second.bytes) return &after->second;
  }
  violate(std::string(what) + " of " + std::to_string(bytes) +
          " bytes that are not within one allocation");
  return nullptr;
}

bool Runtime::known_stream(Stream* stream) {
  if (!streams_.contains(stream)) {
    violate("use of a stream that does not exist");
    return false;
  }
  for (const ForeignWork& work : std::exchange(stream->pending, {})) {
    mutex_.unlock();
    work.run(work.data.get());
    mutex_.lock();
  }
  return true;
}

void Runtime::touch(Block& block, Stream* stream, bool write, const char* what) {
  if (block.writer != nullptr && block.writer != stream &&
      stream->clock[block.writer] < block.tick) {
    violate(std::string(what) + " on one stream races with a write on another");
  }
  const uint64_t tick = ++stream->clock[stream];
  if (!write) {
    block.readers[stream] = tick;
    return;
  }
  for (const auto& [reader, when] : block.readers) {
    if (reader != stream && stream->clock[reader] < when) {
      violate(std::string(what) + " on one stream races with a read on another");
    }
  }
  block.readers.clear();
  block.writer = stream;
  block.tick = tick;
}

int Runtime::copy(void* to, const void* from, size_t bytes, bool to_device, bool from_device,
                  Stream* stream) {
  const std::scoped_lock lock(mutex_);
  if (!known_stream(stream)) return kInvalidHandle;
  if (from_device) {
    Block* block = block_around(from, bytes, "copy");
    if (block == nullptr) return kInvalidValue;
    touch(*block, stream, false, "copy");
  }
  if (to_device) {
    Block* block = block_around(to, bytes, "copy");
    if (block == nullptr) return kInvalidValue;
    touch(*block, stream, true, "copy");
  }
  if (stream->capturing)
    return capture_copy({to, from, bytes, 0}, to_device && from_device, stream);
  if (!from_device) note_upload(to, bytes);
  std::memmove(to, from, bytes);
  return kSuccess;
}

int Runtime::copy_peer(void* to, int to_device, const void* from, int from_device, size_t bytes,
                       Stream* stream) {
  const std::scoped_lock lock(mutex_);
  if (!known_stream(stream)) return kInvalidHandle;
  for (const auto& [data, device] :
       {std::pair{static_cast<const void*>(to), to_device}, std::pair{from, from_device}}) {
    const Block* block = block_around(data, bytes, "copy");
    if (block == nullptr) return kInvalidValue;
    if (block->host || block->device != device) violate("copy of another device's memory");
  }
  return copy(to, from, bytes, true, true, stream);
}

int Runtime::fill(void* data, int value, size_t bytes, Stream* stream) {
  const std::scoped_lock lock(mutex_);
  if (!known_stream(stream)) return kInvalidHandle;
  Block* block = block_around(data, bytes, "fill");
  if (block == nullptr) return kInvalidValue;
  touch(*block, stream, true, "fill");
  if (stream->capturing) return capture_copy({data, nullptr, bytes, value}, true, stream);
  std::memset(data, value, bytes);
  return kSuccess;
}

int Runtime::create_stream(void** stream) {
  const std::scoped_lock lock(mutex_);
  *stream = *streams_.insert(new Stream{.device = current_device}).first;
  return kSuccess;
}

int Runtime::destroy_stream(Stream* stream) {
  const std::scoped_lock lock(mutex_);
  if (!known_stream(stream)) return kInvalidHandle;
  streams_.erase(stream);
  delete stream;
  return kSuccess;
}

int Runtime::synchronize(Stream* stream) {
  const std::scoped_lock lock(mutex_);
  if (!known_stream(stream)) return kInvalidHandle;
  if (stream->capturing) return conflict(*stream, "synchronize");
  if (!fault_file_.empty() && access(fault_file_.c_str(), F_OK) == 0) std::abort();
  // The host has waited for the stream; work that it queues from now on has, too.
  for (Stream* other : streams_) {
    for (const auto& [who, tick] : stream->clock) {
      other->clock[who] = std::max(other->clock[who], tick);
    }
  }
  return kSuccess;
}

int Runtime::create_event(void** event) {
  const std::scoped_lock lock(mutex_);
  *event = *events_.insert(new Event{.device = current_device, .clock = {}}).first;
  return kSuccess;
}

int Runtime::destroy_event(Event* event) {
  const std::scoped_lock lock(mutex_);
  if (events_.erase(event) == 0) {
    violate("destruction of an event that does not exist");
    return kInvalidHandle;
  }
  delete event;
  return kSuccess;
}

int Runtime::record(Event* event, Stream* stream) {
  const std::scoped_lock lock(mutex_);
  if (!known_stream(stream)) return kInvalidHandle;
  if (!events_.contains(event)) {
    violate("record of an event that does not exist");
    return kInvalidHandle;
  }
  if (!on_device(stream->device, "record") || !on_device(event->device, "record")) {
    return kInvalidHandle;
  }
  if (stream->capturing && stream->invalidated) return kCaptureInvalidated;
  event->captured_by = stream->capturing ? stream : nullptr;
  ++stream->clock[stream];
  event->clock = stream->clock;
  event->recorded = true;
  event->ms = static_cast<double>(launches_);
  return kSuccess;
}

int Runtime::wait(Stream* stream, Event* event) {
  const std::scoped_lock lock(mutex_);
  if (!known_stream(stream)) return kInvalidHandle;
  if (!events_.contains(event)) {
    violate("wait for an event that does not exist");
    return kInvalidHandle;
  }
  if (stream->capturing && stream->invalidated) return kCaptureInvalidated;
  if (event->recorded && event->captured_by != (stream->capturing ? stream : nullptr)) {
    if (stream->capturing) {
      conflict(*stream, "wait for work outside of it");
      return kCaptureIsolation;
    }
    violate("wait for an event of a capture");  // it would make the stream part of the capture
    return kCapturedEvent;
  }
  for (const auto& [who, tick] : event->clock) {
    stream->clock[who] = std::max(stream->clock[who], tick);
  }
  return kSuccess;
}

int Runtime::synchronize(Event* event) {
  const std::scoped_lock lock(mutex_);
  if (!events_.contains(event)) return kInvalidHandle;
  if (event->captured_by == nullptr) return kSuccess;
  violate("synchronize with an event of a capture");
  return kCapturedEvent;
}

int Runtime::load_module(void** module, const void* image, ImageReader read) {
  const std::scoped_lock lock(mutex_);
  if (const int status = outside_captures("load of a module")) return status;
  size_t most = 0;
  int refusal = kSuccess;
  if (std::ifstream(modules_file_) >> most >> refusal && modules_.size() >= most) return refusal;
  auto loaded = std::make_unique<Module>();
  loaded->device = current_device;
  loaded->image = image;
  try {
    loaded->code = read(image, options.architecture);
  } catch (const std::exception& error) {
    violate(error.what());
    return kInvalidImage;
  }
  *module = *modules_.insert(loaded.release()).first;
  return kSuccess;
}

int Runtime::unload_module(Module* module) {
  const std::scoped_lock lock(mutex_);
  if (const int status = outside_captures("unload of a module")) return status;
  if (modules_.erase(module) == 0) {
    violate("unload of a module that does not exist");
    return kInvalidHandle;
  }
  for (const auto& [name, kernel] : module->kernels) kernels_.erase(kernel.get());
  delete module;
  return kSuccess;
}

int Runtime::find_kernel(void** kernel, Module* module, const char* name) {
  const std::scoped_lock lock(mutex_);
  if (!modules_.contains(module)) {
    violate("look-up in a module that does not exist");
    return kInvalidHandle;
  }
  std::unique_ptr<Kernel>& known = module->kernels[name];
  if (!known) {
    const auto facts = module->code.kernels.find(name);
    if (module->code.tells_kernels() && facts == module->code.kernels.end()) {
      module->kernels.erase(name);
      return kNotFound;
    }
    const bool told = facts != module->code.kernels.end();
    known = std::make_unique<Kernel>(
        Kernel{.module = module,
               .name = name,
               .facts = told ? facts->second : KernelFacts{.most_threads = kMostThreads}});
    kernels_.insert(known.get());
  }
  *kernel = known.get();
  return kSuccess;
}

void Runtime::end_as_told(const std::string& kernel) const {
  if (fatal_kernel_.empty() || kernel.find(fatal_kernel_) == std::string::npos) return;
  if (fatal_end_ == "abort") std::abort();
  for (;;) pause();
}

int Runtime::allow_shared(Kernel* kernel, uint32_t bytes, const LaunchLimits& limits) {
  const std::scoped_lock lock(mutex_);
  if (bytes > limits.shared) {
    violate(std::to_string(bytes) + " bytes of shared memory for " + kernel->name);
    return kInvalidValue;
  }
  kernel->allowed_shared = bytes;
  return kSuccess;
}

int Runtime::launch(Kernel* kernel, const LaunchShape& shape, const LaunchLimits& limits,
                    Stream* stream, void** params) {
  const std::scoped_lock lock(mutex_);
  const auto& [grid, threads, shared_bytes] = shape;
  const uint32_t params_bytes = std::exchange(told_params, 0);
  if (!known_stream(stream)) return kInvalidHandle;
  if (!kernels_.contains(kernel)) {
    violate("launch of a kernel that does not exist");
    return kInvalidHandle;
  }
  if (!on_device(stream->device, "launch") || !on_device(kernel->module->device, "launch")) {
    return kInvalidHandle;
  }
  const KernelFacts& facts = kernel->facts;
  if (params_bytes != 0 && facts.params_bytes != 0 && params_bytes != facts.params_bytes) {
    violate(kernel->name + " takes " + std::to_string(facts.params_bytes) +
            " bytes of parameters, not " + std::to_string(params_bytes));
    return kInvalidValue;
  }
  if (reinterpret_cast<uintptr_t>(params[0]) % facts.params_align != 0) {
    violate("parameters of " + kernel->name + " that do not begin at a multiple of " +
            std::to_string(facts.params_align) + " bytes");
    return kInvalidValue;
  }
  const uint32_t allowed = std::max(kernel->allowed_shared, limits.shared_unasked);
  const bool fits = grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.y < 65536 && grid.z < 65536 &&
                    grid.x <= limits.blocks_x && uint64_t{grid.x} * threads <= limits.threads_x &&
                    threads > 0 && threads <= facts.most_threads && shared_bytes <= allowed &&
                    facts.shared_bytes + shared_bytes <= limits.shared &&
                    grid.x % facts.cluster == 0;
  if (!fits) {
    violate("launch of " + kernel->name + " with " + std::to_string(threads) + " threads, grid " +
            std::to_string(grid.x) + " x " + std::to_string(grid.y) + " x " +
            std::to_string(grid.z) + ", " + std::to_string(facts.shared_bytes) + " + " +
            std::to_string(shared_bytes) + " bytes shared");
    return kInvalidValue;
  }
  if (stream->capturing && stream->invalidated) return kCaptureInvalidated;
  ++stream->clock[stream];
  CapturedLaunch launch{.kernel = kernel,
                        .grid = grid,
                        .threads = threads,
                        .shared_bytes = shared_bytes,
                        .params = {}};
  const auto* first = static_cast<const std::byte*>(params[0]);
  launch.params.assign(first, first + facts.params_bytes);
  if (!stream->capturing) return run(launch);
  captures_[stream]->work.emplace_back(std::move(launch));
  return kSuccess;
}

int Runtime::map_tensor(const void* data, size_t bytes, const std::string& fault) {
  const std::scoped_lock lock(mutex_);
  if (!fault.empty()) violate("tensor map with " + fault);
  const bool within = block_around(data, bytes, "tensor map") != nullptr;
  return fault.empty() && within ? kSuccess : kInvalidValue;
}

int Runtime::check_attribute(int id, bool known) {
  const std::scoped_lock lock(mutex_);
  if (!known) violate("launch with attribute " + std::to_string(id));
  return known ? kSuccess : kInvalidValue;
}

std::string Runtime::violation() const {
  const std::scoped_lock lock(mutex_);
  return violation_;
}

int64_t Runtime::launches() const {
  const std::scoped_lock lock(mutex_);
  return launches_;
}

int64_t Runtime::calls(const std::string& name) const {
  const std::scoped_lock lock(mutex_);
  const auto found = calls_.find(name);
  return found != calls_.end() ? found->second : 0;
}

}  // namespace rbee::fake
