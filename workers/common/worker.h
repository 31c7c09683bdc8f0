#pragma once
// A worker's program, whatever it makes and on which device: log, signals, server; the model is
// loaded before anything listens.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rbee/core/device_id.h"
#include "rbee/core/log.h"
#include "server/http/router.h"
#include "server/worker/service.h"
#include "workers/common/server_flags.h"

namespace rbee::workers {

// Flags that workers of every kind have.
struct CommonFlags : ServerFlags {
  DeviceKind kind = DeviceKind::cpu;  // of the worker's devices; no flag
  std::string worker_id;
  std::string model_ref;             // reported name; empty = the model's own
  std::string hive_url;              // where heartbeats go; empty = nowhere
  int device = 0;                    // ordinal among the devices of the worker's kind
  std::string device_text;           // of --device, as it was given; empty = none
  int threads = 0;                   // 0 = one for each core
  std::vector<std::string> ignored;  // what was not understood
};

// An engine and its service.
class Served {
 public:
  virtual ~Served() = default;
  virtual server::WorkerService& service() = 0;
  // shutdown: as add_worker_routes() takes it.
  virtual server::Router routes(std::function<void()> shutdown) = 0;
  // Of a request; larger ones are refused.
  virtual size_t max_body_bytes() const { return size_t{1} << 20; }
  // Ends the engine.
  virtual void stop() = 0;
};

// What tells one executable from another.
struct Program {
  const char* name;  // e.g. "llm-worker-rbee-cpu"
  DeviceKind kind;   // of the device that the model runs on
  // Gives memory that the device keeps for later requests back to the system; null: nothing does.
  // Called after five looks at which nothing ran, one after another, and after each five more.
  void (*trim_memory)() = nullptr;
  std::chrono::milliseconds tick{1000};  // between two looks at what the worker does
};

// main() after the command line. model: as given, for the log. Exit status: 0 after a signal or
// POST /v1/shutdown; 1 when the worker cannot start; 3 when the device, or a part of a mapped file,
// was lost.
int run_worker(const Program& program, const CommonFlags& flags, const std::string& model,
               const std::function<std::unique_ptr<Served>()>& load);

}  // namespace rbee::workers
