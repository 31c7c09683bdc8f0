#pragma once
// The program of every kind of worker: log, signals, server. While the model loads, a small server
// says how far that is.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/core/device_id.h"
#include "rbee/core/log.h"
#include "server/http/router.h"
#include "server/worker/loading.h"
#include "server/worker/service.h"
#include "workers/common/server_flags.h"

namespace rbee::workers {

// Flags of workers of every kind.
struct CommonFlags : ServerFlags {
  DeviceKind kind = DeviceKind::cpu;  // of the worker's devices; no flag
  std::string worker_id;
  std::string model_ref;             // reported name; empty = the model's own
  std::string hive_url;              // destination of heartbeats; empty = none
  int device = 0;                    // ordinal among the devices of the worker's kind
  std::string device_text;           // value of --device; empty = none
  bool any_device = false;           // --device auto
  bool several_devices = false;      // --device has a list, for the ranks of a group
  int threads = 0;                   // 0 = one for each core
  std::vector<std::string> ignored;  // unknown flags
};

// An engine and its service.
class Served {
 public:
  virtual ~Served() = default;
  virtual server::WorkerService& service() = 0;
  // shutdown: as in add_worker_routes().
  virtual server::Router routes(std::function<void()> shutdown) = 0;
  // Limit of a request's body; larger ones are refused.
  virtual size_t max_body_bytes() const { return size_t{1} << 20; }
  // Stops the engine.
  virtual void stop() = 0;
};

// The differences between the workers.
struct Program {
  const char* name;  // e.g. "llm-worker-rbee-cpu"
  DeviceKind kind;   // of the device that the model runs on
  // Returns memory that the device keeps for later requests to the system; null: does nothing.
  // Called after every five idle ticks in a row.
  void (*trim_memory)() = nullptr;
  std::chrono::milliseconds tick{1000};  // between two checks of the worker's state
};

// Exit status after the loss of the device, of another rank, or of pages of a mapped file.
inline constexpr int kLost = 3;

// As the environment and standard output say.
void start_log();

// The form of an error for a path while the model loads (server/apis/error_forms.h).
using PathErrorForm = server::ErrorForm (*)(std::string_view path);

// Loads the model, and tells how far it is.
using Load = std::function<std::unique_ptr<Served>(server::LoadingState&)>;

// main() after the command line. model: as given, for the log. Exit status: 0 after a signal or
// POST /v1/shutdown; 1 if the worker cannot start; kLost.
int run_worker(const Program& program, const CommonFlags& flags, const std::string& model,
               PathErrorForm error_form, const Load& load);

}  // namespace rbee::workers
