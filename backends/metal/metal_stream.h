#pragma once
// A stream of a Metal device: a command queue and the commands that are being encoded. For one
// thread at a time, which the mutex within sees to: memory may be freed by another thread
// meanwhile.

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "backends/gpu/driver.h"
#include "backends/metal/metal_buffers.h"
#include "backends/metal/objc.h"

namespace rbee::metal {

struct Kernel {
  std::string name;
  Retained library, pipeline;
  uint64_t most_threads = 0, static_bytes = 0;
};

struct CapturedLaunch {
  const Kernel* kernel = nullptr;
  gpu::Grid grid;
  uint32_t threads = 0, shared_bytes = 0;
  std::vector<std::byte> params;
};
struct CapturedCopy {
  void* to = nullptr;
  const void* from = nullptr;
  size_t bytes = 0;
};
struct CapturedFill {
  void* data = nullptr;
  uint8_t value = 0;
  size_t bytes = 0;
};
// What was captured: both memories of a copy are the device's.
using Capture = std::vector<std::variant<CapturedLaunch, CapturedCopy, CapturedFill>>;

class MetalStream;

struct MetalEvent {
  Retained event;                            // MTLSharedEvent
  uint64_t value = 0;                        // of the last record
  Retained commands;                         // that signal it; committed
  const MetalStream* captured_by = nullptr;  // the last record was in this stream's capture
};

// All calls throw device: what a command buffer told of its end, or a call that Metal refused.
class MetalStream {
 public:
  MetalStream(const ObjC& objc, Id device, Buffers& buffers);
  ~MetalStream();  // waits; errors are lost with it
  MetalStream(const MetalStream&) = delete;
  MetalStream& operator=(const MetalStream&) = delete;

  void launch(const CapturedLaunch& what);
  void copy(void* to, const void* from, size_t bytes, CopyKind kind);
  void fill(void* data, uint8_t value, size_t bytes);
  void record(MetalEvent& event);
  void wait(const MetalEvent& event);
  // Until all has ended.
  void synchronize();
  // The same; an error stays for the stream's next call.
  void finish() noexcept;

  void begin_capture();
  Capture end_capture();
  void replay(const Capture& captured);

 private:
  enum class Encoder : uint8_t { none, compute, blit };
  struct Committed {
    Retained commands;
    std::vector<Retained> events;  // which the caller may have destroyed meanwhile
  };

  Id commands();
  // Ends another kind of encoder, and begins this one.
  Id encoder(Encoder kind);
  void end_encoder();
  void commit();
  void wait_all();
  // Forgets what has completed, and keeps the first error among it.
  void reap(bool all);
  void raise();
  void encode(const CapturedLaunch& what);
  void encode(const CapturedCopy& what);
  void encode(const CapturedFill& what);
  bool capture(std::variant<CapturedLaunch, CapturedCopy, CapturedFill> what);

  const ObjC& objc_;
  Buffers& buffers_;
  std::mutex mutex_;
  Retained queue_, commands_, encoder_;
  Encoder kind_ = Encoder::none;
  int launches_ = 0;             // in the commands that are being encoded
  uint64_t resources_seen_ = 0;  // of the open encoder; 0: none were named yet
  std::vector<Id> resources_;
  uint32_t shared_set_ = 0;       // in the open encoder, bytes
  std::vector<Retained> events_;  // that these commands name
  std::deque<Committed> in_flight_;
  std::string fault_;
  std::unique_ptr<Capture> capture_;
};

}  // namespace rbee::metal
