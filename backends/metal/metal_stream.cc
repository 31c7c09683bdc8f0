#include "backends/metal/metal_stream.h"

#include <cstring>
#include <utility>

#include "rbee/core/error.h"

namespace rbee::metal {
namespace {

// A command buffer's launches: few enough that the device begins early, many enough that
// committing costs little.
constexpr int kMostLaunches = 64;

// What kernels read in buffer 1 (docs/design/metal-text.md).
struct LaunchNumbers {
  uint32_t blocks[3];
  uint16_t threads[3];
};

template <typename... Numbers>
bool whole_words(Numbers... numbers) {
  return ((numbers % 4 == 0) && ...);
}

}  // namespace

MetalStream::MetalStream(const ObjC& objc, Id device, Buffers& buffers)
    : objc_(objc),
      buffers_(buffers),
      queue_(Retained::owned(objc, objc.send<MetalMessage::new_queue>(device))) {
  if (!queue_) fail(Code::device, "newCommandQueue", "the device gives no queue");
}

MetalStream::~MetalStream() {
  finish();
}

Id MetalStream::commands() {
  if (commands_) return commands_.get();
  reap(false);
  raise();
  Id made = objc_.send<MetalMessage::command_buffer>(queue_.get());
  if (made == nullptr) fail(Code::device, "commandBuffer", "the queue gives no command buffer");
  commands_ = Retained::shared(objc_, made);
  return made;
}

Id MetalStream::encoder(Encoder kind) {
  if (kind_ == kind) return encoder_.get();
  end_encoder();
  const bool computes = kind == Encoder::compute;
  Id made = computes ? objc_.send<MetalMessage::compute_encoder>(commands())
                     : objc_.send<MetalMessage::blit_encoder>(commands());
  if (made == nullptr) {
    fail(Code::device, computes ? "computeCommandEncoder" : "blitCommandEncoder",
         "the command buffer gives no encoder");
  }
  encoder_ = Retained::shared(objc_, made);
  kind_ = kind;
  resources_seen_ = 0;
  shared_set_ = 0;
  return made;
}

void MetalStream::end_encoder() {
  if (kind_ == Encoder::none) return;
  objc_.send<MetalMessage::end_encoding>(encoder_.get());
  encoder_ = {};
  kind_ = Encoder::none;
}

void MetalStream::commit() {
  end_encoder();
  launches_ = 0;
  if (!commands_) return;
  objc_.send<MetalMessage::commit>(commands_.get());
  in_flight_.push_back(
      {.commands = std::exchange(commands_, {}), .events = std::exchange(events_, {})});
}

void MetalStream::wait_all() {
  commit();
  // A queue's command buffers complete in order.
  if (!in_flight_.empty()) {
    objc_.send<MetalMessage::wait_until_completed>(in_flight_.back().commands.get());
  }
  reap(true);
}

void MetalStream::reap(bool all) {
  while (!in_flight_.empty()) {
    Id first = in_flight_.front().commands.get();
    const uint64_t status = objc_.send<MetalMessage::status>(first);
    if (!all && status < kStatusCompleted) return;
    if (status == kStatusError && fault_.empty()) {
      fault_ = objc_.error_text(objc_.send<MetalMessage::error>(first));
    }
    in_flight_.pop_front();
  }
}

void MetalStream::raise() {
  if (fault_.empty()) return;
  fail(Code::device, "command buffer", std::exchange(fault_, {}));
}

void MetalStream::synchronize() {
  const std::scoped_lock lock(mutex_);
  const AutoreleasePool pool(objc_);
  if (capture_) fail(Code::device, "waitUntilCompleted", "the stream is being captured");
  wait_all();
  raise();
}

void MetalStream::finish() noexcept {
  const std::scoped_lock lock(mutex_);
  const AutoreleasePool pool(objc_);
  try {
    wait_all();
  } catch (const std::exception& error) {
    fault_ = error.what();
  }
}

bool MetalStream::capture(std::variant<CapturedLaunch, CapturedCopy, CapturedFill> what) {
  if (!capture_) return false;
  capture_->push_back(std::move(what));
  return true;
}

void MetalStream::launch(const CapturedLaunch& what) {
  const std::scoped_lock lock(mutex_);
  const AutoreleasePool pool(objc_);
  if (!capture(what)) encode(what);
}

void MetalStream::encode(const CapturedLaunch& what) {
  Id to = encoder(Encoder::compute);
  if (buffers_.update(resources_seen_, resources_) && !resources_.empty()) {
    objc_.send<MetalMessage::use_resources>(to, resources_.data(), uint64_t{resources_.size()},
                                            kUsageReadWrite);
  }
  const gpu::Grid& grid = what.grid;
  const LaunchNumbers numbers{.blocks = {grid.x, grid.y, grid.z},
                              .threads = {static_cast<uint16_t>(what.threads), 1, 1}};
  objc_.send<MetalMessage::set_pipeline>(to, what.kernel->pipeline.get());
  objc_.send<MetalMessage::set_bytes>(to, what.params.data(), what.params.size(), 0);
  objc_.send<MetalMessage::set_bytes>(to, &numbers, sizeof numbers, 1);
  const uint32_t shared = (what.shared_bytes + 15) / 16 * 16;
  if (shared != shared_set_) {
    objc_.send<MetalMessage::set_threadgroup_memory>(to, shared, 0);
    shared_set_ = shared;
  }
  objc_.send<MetalMessage::dispatch>(to, MTLSize{grid.x, grid.y, grid.z},
                                     MTLSize{what.threads, 1, 1});
  if (++launches_ >= kMostLaunches) commit();
}

void MetalStream::copy(void* to, const void* from, size_t bytes, CopyKind kind) {
  const std::scoped_lock lock(mutex_);
  const AutoreleasePool pool(objc_);
  if (kind == CopyKind::device_to_device) {
    const CapturedCopy what{.to = to, .from = from, .bytes = bytes};
    if (!capture(what)) encode(what);
    return;
  }
  if (capture_) fail(Code::device, "capture", "a copy between host and device");
  const bool up = kind == CopyKind::host_to_device;
  const BufferPlace device = buffers_.device_place(up ? to : from, bytes);
  const BufferPlace host = buffers_.host_place(up ? from : to, bytes);
  if (host.buffer != nullptr && whole_words(device.offset, host.offset, bytes)) {
    const BufferPlace& source = up ? host : device;
    const BufferPlace& target = up ? device : host;
    objc_.send<MetalMessage::copy_buffer>(encoder(Encoder::blit), source.buffer, source.offset,
                                          target.buffer, target.offset, bytes);
    return;
  }
  // The device shares the host's memory, and the host does it at once.
  wait_all();
  raise();
  std::memcpy(up ? device.host : to, up ? from : device.host, bytes);
}

void MetalStream::encode(const CapturedCopy& what) {
  const BufferPlace from = buffers_.device_place(what.from, what.bytes);
  const BufferPlace to = buffers_.device_place(what.to, what.bytes);
  if (whole_words(from.offset, to.offset, what.bytes)) {
    objc_.send<MetalMessage::copy_buffer>(encoder(Encoder::blit), from.buffer, from.offset,
                                          to.buffer, to.offset, what.bytes);
    return;
  }
  wait_all();
  raise();
  std::memmove(to.host, from.host, what.bytes);
}

void MetalStream::fill(void* data, uint8_t value, size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const AutoreleasePool pool(objc_);
  const CapturedFill what{.data = data, .value = value, .bytes = bytes};
  if (!capture(what)) encode(what);
}

void MetalStream::encode(const CapturedFill& what) {
  const BufferPlace at = buffers_.device_place(what.data, what.bytes);
  if (whole_words(at.offset, what.bytes)) {
    objc_.send<MetalMessage::fill_buffer>(encoder(Encoder::blit), at.buffer,
                                          NSRange{at.offset, what.bytes}, what.value);
    return;
  }
  wait_all();
  raise();
  std::memset(at.host, what.value, what.bytes);
}

void MetalStream::record(MetalEvent& event) {
  const std::scoped_lock lock(mutex_);
  const AutoreleasePool pool(objc_);
  event.captured_by = capture_ ? this : nullptr;
  if (capture_) return;
  end_encoder();
  Id from = commands();
  objc_.send<MetalMessage::encode_signal>(from, event.event.get(), ++event.value);
  event.commands = Retained::shared(objc_, from);
  events_.push_back(Retained::shared(objc_, event.event.get()));
  commit();
  reap(false);
  raise();
}

void MetalStream::wait(const MetalEvent& event) {
  const std::scoped_lock lock(mutex_);
  const AutoreleasePool pool(objc_);
  if (event.captured_by != (capture_ ? this : nullptr) && (event.captured_by || event.value > 0)) {
    fail(Code::device, "encodeWaitForEvent:value:",
         capture_ ? "a capture waits for work outside of it" : "the event is of a capture");
  }
  if (capture_ || event.value == 0) return;  // a stream's own work is in order
  end_encoder();
  objc_.send<MetalMessage::encode_wait>(commands(), event.event.get(), event.value);
  events_.push_back(Retained::shared(objc_, event.event.get()));
}

void MetalStream::begin_capture() {
  const std::scoped_lock lock(mutex_);
  if (capture_) fail(Code::device, "capture", "the stream is being captured");
  capture_ = std::make_unique<Capture>();
}

Capture MetalStream::end_capture() {
  const std::scoped_lock lock(mutex_);
  if (!capture_) fail(Code::device, "capture", "the stream is not being captured");
  return std::move(*std::exchange(capture_, nullptr));
}

void MetalStream::replay(const Capture& captured) {
  const std::scoped_lock lock(mutex_);
  const AutoreleasePool pool(objc_);
  if (capture_) fail(Code::device, "capture", "a capture within a capture");
  for (const auto& item : captured) {
    std::visit([this](const auto& what) { encode(what); }, item);
  }
}

}  // namespace rbee::metal
