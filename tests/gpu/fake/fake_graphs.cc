// The effects of kernels, and captures.

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "backends/shared/elementwise_params.h"
#include "tests/gpu/fake/fake_runtime.h"

namespace rbee::fake {
namespace {

constexpr int kStaleEach = 50;  // replays

// The bytes of an element of kernel copy_b<bytes>; 0: another kernel.
size_t copied_bytes(std::string_view kernel) {
  constexpr std::string_view kCopy = "copy_b";
  size_t bytes = 0;
  if (!kernel.starts_with(kCopy)) return 0;
  std::from_chars(kernel.data() + kCopy.size(), kernel.data() + kernel.size(), bytes);
  return bytes;
}

void copy_elements(const CapturedLaunch& launch) {
  const size_t each = copied_bytes(launch.kernel->name);
  shared::CopyParams params;
  if (each == 0 || launch.params.size() < sizeof params) return;
  std::memcpy(static_cast<void*>(&params), launch.params.data(), sizeof params);
  const auto& space = params.space;
  if (space.rank != 1 || space.strides[0][0] != 1 || space.strides[1][0] != 1) return;
  std::memmove(params.y, params.x, space.count * each);
}

}  // namespace

int Runtime::run(const CapturedLaunch& launch) {
  ++launches_;
  end_as_told(launch.kernel->name);
  if (hook == nullptr) {
    copy_elements(launch);
    return kSuccess;
  }
  return hook(launch.kernel->module->image, launch.kernel->name.c_str(), launch.grid,
              launch.threads, launch.shared_bytes, launch.params.data(),
              static_cast<uint32_t>(launch.params.size()));
}

int Runtime::outside_captures(const char* call) {
  int status = kSuccess;
  for (auto& [stream, graph] : captures_) {
    const bool forbids =
        stream->mode == CaptureMode::global || (stream->mode == CaptureMode::thread_local_ &&
                                                stream->thread == std::this_thread::get_id());
    if (forbids) status = conflict(*stream, call);
  }
  return status;
}

int Runtime::conflict(Stream& stream, const char* call) {
  violate(std::string(call) + " while a stream is captured");
  stream.invalidated = true;
  return kCaptureUnsupported;
}

int Runtime::capture_copy(const CapturedCopy& copy, bool within, Stream* stream) {
  if (stream->invalidated) return kCaptureInvalidated;
  if (!within) {
    violate("copy between host and device while the stream is captured");
    return kInvalidValue;
  }
  captures_[stream]->work.emplace_back(copy);
  return kSuccess;
}

void Runtime::note_upload(const void* to, size_t bytes) {
  if (graph_fault_ != "stale_uploads") return;
  const auto* at = static_cast<const std::byte*>(to);
  uploads_.try_emplace(reinterpret_cast<uintptr_t>(to), at, at + bytes);
}

void Runtime::keep_last_arguments(Graph& graph) {
  std::map<const Kernel*, std::vector<std::byte>> last;
  for (const auto& item : graph.work) {
    if (const auto* launch = std::get_if<CapturedLaunch>(&item)) {
      last[launch->kernel] = launch->params;
    }
  }
  for (auto& item : graph.work) {
    if (auto* launch = std::get_if<CapturedLaunch>(&item)) launch->params = last[launch->kernel];
  }
}

int Runtime::replay(const Graph& graph) {
  for (const auto& item : graph.work) {
    if (const auto* launch = std::get_if<CapturedLaunch>(&item)) {
      if (const int status = run(*launch)) return status;
      continue;
    }
    if (const auto* foreign = std::get_if<ForeignWork>(&item)) {
      const ForeignWork work = *foreign;
      mutex_.unlock();  // it may wait for other ranks, which may be threads
      const int status = work.run(work.data.get());
      mutex_.lock();
      if (status != kSuccess) return status;
      continue;
    }
    const auto& copy = std::get<CapturedCopy>(item);
    if (copy.from == nullptr) {
      std::memset(copy.to, copy.value, copy.bytes);
    } else {
      std::memmove(copy.to, copy.from, copy.bytes);
    }
  }
  return kSuccess;
}

int Runtime::queue(Stream* stream, ForeignWork work, const std::vector<Touched>& memory) {
  const std::scoped_lock lock(mutex_);
  if (!streams_.contains(stream)) {
    violate("use of a stream that does not exist");
    return kInvalidHandle;
  }
  if (!on_device(stream->device, "a collective operation")) return kInvalidHandle;
  if (stream->capturing && stream->invalidated) return kCaptureInvalidated;
  for (const Touched& part : memory) {
    Block* block = block_around(part.data, part.bytes, "a collective operation");
    if (block == nullptr) return kInvalidValue;
    if (block->host || block->device != stream->device) {
      violate("a collective operation on memory of another device");
    }
    touch(*block, stream, part.written, "a collective operation");
  }
  if (stream->capturing) {
    captures_[stream]->work.emplace_back(std::move(work));
  } else {
    stream->pending.push_back(std::move(work));
  }
  return kSuccess;
}

bool Runtime::capturing(Stream* stream) {
  const std::scoped_lock lock(mutex_);
  return streams_.contains(stream) && stream->capturing;
}

int Runtime::begin_capture(Stream* stream, int mode) {
  const std::scoped_lock lock(mutex_);
  if (!known_stream(stream)) return kInvalidHandle;
  if (stream->capturing) return kIllegalState;
  if (mode < 0 || mode > static_cast<int>(CaptureMode::relaxed)) return kInvalidValue;
  stream->capturing = true;
  stream->mode = static_cast<CaptureMode>(mode);
  stream->thread = std::this_thread::get_id();
  stream->invalidated = false;
  captures_[stream] = std::make_unique<Graph>();
  return kSuccess;
}

int Runtime::end_capture(Stream* stream, int status, void** graph) {
  const std::scoped_lock lock(mutex_);
  if (!known_stream(stream)) return kInvalidHandle;
  if (!stream->capturing) return kIllegalState;
  if (stream->mode != CaptureMode::relaxed && stream->thread != std::this_thread::get_id()) {
    violate("end of a capture by another thread");
    return kCaptureWrongThread;
  }
  stream->capturing = false;
  if (status == kSuccess && stream->invalidated) status = kCaptureInvalidated;
  if (graph_fault_ == "last_arguments") keep_last_arguments(*captures_[stream]);
  if (status == kSuccess) *graph = *graphs_.insert(captures_[stream].release()).first;
  captures_.erase(stream);
  return status;
}

int Runtime::instantiate(Graph* graph) {
  const std::scoped_lock lock(mutex_);
  if (!graphs_.contains(graph)) {
    violate("instantiation of a graph that does not exist");
    return kInvalidHandle;
  }
  ++graph->handles;
  return kSuccess;
}

int Runtime::launch_graph(Graph* graph, Stream* stream) {
  const std::scoped_lock lock(mutex_);
  if (!known_stream(stream)) return kInvalidHandle;
  if (!graphs_.contains(graph)) {
    violate("launch of a graph that does not exist");
    return kInvalidHandle;
  }
  if (!on_device(stream->device, "launch")) return kInvalidHandle;
  const bool stale = graph_fault_ == "stale_uploads" && ++graph->replays % kStaleEach == 0;
  const auto exchange = [](auto& kept) {
    for (auto& [address, bytes] : kept) {
      auto* at = reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
      std::swap_ranges(bytes.begin(), bytes.end(), at);
    }
  };
  if (stale) exchange(uploads_);
  const int status = replay(*graph);
  if (stale) exchange(uploads_);
  uploads_.clear();
  return status;
}

int Runtime::destroy_graph(Graph* graph) {
  const std::scoped_lock lock(mutex_);
  if (!graphs_.contains(graph)) {
    violate("destruction of a graph that does not exist");
    return kInvalidHandle;
  }
  if (--graph->handles > 0) return kSuccess;
  graphs_.erase(graph);
  delete graph;
  return kSuccess;
}

}  // namespace rbee::fake
