#pragma once
// The worker behind its routes, for workers of every kind: keeps jobs and reports the state.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "server/wire/text_events.h"
#include "server/wire/worker_contract.h"
#include "server/worker/job_store.h"

namespace rbee::server {

// The page at "/".
struct Page {
  std::string html;
  std::string policy;  // value of Content-Security-Policy
};

struct ServiceOptions {
  std::string worker_id;
  std::string model_id;        // reported name; empty = the engine's
  std::string implementation;  // e.g. "llm-worker-rbee-cpu"
  std::string version;
  std::vector<std::string> aliases = {}, tags = {};  // of the model, in lists of models
  std::string model_file = {};                       // its name, without folders
  int64_t model_modified = 0;  // seconds since 1970, of its newest file; 0: unknown
  JobStoreOptions jobs = {};
};

// Thrown if the worker cannot accept a valid request now.
class Refused : public std::runtime_error {
 public:
  enum class Why : uint8_t { overloaded, stopping, unhealthy };
  Refused(Why why, const std::string& message) : std::runtime_error(message), why_(why) {}
  Why why() const { return why_; }

 private:
  Why why_;
};

class WorkerService {
 public:
  explicit WorkerService(ServiceOptions options)
      : options_(std::move(options)), store_(options_.jobs) {}
  virtual ~WorkerService() = default;
  WorkerService(const WorkerService&) = delete;
  WorkerService& operator=(const WorkerService&) = delete;

  std::shared_ptr<Job> find_job(const std::string& id) const { return store_.find(id); }
  // Does nothing if there is no such job, or it is over.
  virtual void cancel(const std::string& id) = 0;

  WorkerInfo info() const;
  MemoryFigures memory() const { return state().memory; }
  bool healthy() const { return state().healthy && !stopping_; }
  virtual std::string health_json() const = 0;
  virtual std::string metrics() const = 0;
  // The reported name.
  std::string model_id() const;
  const ServiceOptions& options() const { return options_; }
  virtual Page page() const = 0;
  void set_port(uint16_t port) { port_ = port; }
  // The tracer whose figures are among the metrics. Set it before the server starts.
  void set_tracer(std::shared_ptr<Tracer> tracer) { tracer_ = std::move(tracer); }
  const std::shared_ptr<Tracer>& tracer() const { return tracer_; }
  bool stopping() const { return stopping_; }
  // Accepts no new requests: it drains, or stops.
  bool leaving() const { return draining_ || stopping_; }
  // True while something runs or waits.
  bool busy() const { return state().busy; }
  // Number of requests that run or wait.
  int32_t load() const { return state().load; }
  // Seconds since 1970.
  int64_t started_at() const { return started_at_; }
  // Some job's stream has no reader yet, and may still get one.
  bool has_unread() const { return store_.has_unread(); }
  // Accepts no new requests; running ones go on.
  void drain() { draining_ = true; }

  // Forgets old jobs; call it about once a second.
  void tick(Clock::time_point now);
  // Accepts no new requests and ends every job's stream with a CANCELLED error. Does not wait for
  // the engine.
  void shutdown();

 protected:
  struct State {
    std::string model;   // its name in the engine
    std::string device;  // e.g. "cpu:0"
    bool busy = false;
    int32_t load = 0;  // requests that run or wait
    bool healthy = true;
    MemoryFigures memory;
    int32_t group_ranks = 1;  // as WorkerInfo's, and so the next ones
    std::vector<int64_t> rank_bytes = {};
    int64_t host_cache_bytes = 0;
  };
  virtual State state() const = 0;
  virtual void count_rejected() = 0;

  double uptime_seconds() const;
  std::string new_job_id() const;
  std::function<void()> canceller(std::string id);
  // Stores the job and gives it to the engine through `submit`. Throws Refused, or Error for values
  // that the engine does not accept.
  void admit(const std::shared_ptr<Job>& job, const std::function<void()>& submit);

 private:
  const ServiceOptions options_;
  const Clock::time_point start_ = Clock::now();
  const int64_t started_at_ = std::chrono::duration_cast<std::chrono::seconds>(
                                  std::chrono::system_clock::now().time_since_epoch())
                                  .count();
  JobStore store_;
  std::shared_ptr<Tracer> tracer_;
  std::atomic<uint16_t> port_ = 0;
  std::atomic<bool> draining_ = false;
  std::atomic<bool> stopping_ = false;
};

}  // namespace rbee::server
