#pragma once
// The worker behind its routes: takes requests, keeps their jobs, reports the worker's state.

#include <atomic>
#include <stdexcept>
#include <string>

#include "rbee/engine/engine.h"
#include "server/contract/requests.h"
#include "server/contract/responses.h"
#include "server/llm/job_store.h"
#include "server/llm/metrics.h"

namespace rbee::server {

struct ServiceOptions {
  std::string worker_id;
  std::string model_id;        // reported; empty = the engine's
  std::string implementation;  // e.g. "llm-worker-rbee-cpu"
  std::string version;
  JobStoreOptions jobs;
};

// Thrown when a valid request is not taken now.
class Refused : public std::runtime_error {
 public:
  enum class Why : uint8_t { overloaded, stopping, unhealthy };
  Refused(Why why, const std::string& message) : std::runtime_error(message), why_(why) {}
  Why why() const { return why_; }

 private:
  Why why_;
};

class LlmService {
 public:
  // The engine outlives the service; the service outlives the server that calls it.
  LlmService(engine::Engine& engine, ServiceOptions options);

  // Each throws Refused, or Error for values that the engine does not take.
  std::shared_ptr<Job> create_job(const GenerateRequest& request);  // read through take_events()
  std::shared_ptr<EventQueue> infer_stream(const GenerateRequest& request);
  std::shared_ptr<DelayedResponse> infer_text(const GenerateRequest& request);

  std::shared_ptr<Job> find_job(const std::string& id) const { return store_.find(id); }
  // Nothing happens when there is no such job, or it is over.
  void cancel(const std::string& id);

  WorkerInfo info() const;
  Health health() const;
  std::string metrics() const;
  void set_port(uint16_t port) { port_ = port; }
  bool stopping() const { return stopping_; }

  // Forgets old jobs; to be called about once a second.
  void tick(Clock::time_point now);
  // Takes no new request and ends every job's stream with a CANCELLED error. Does not wait for the
  // engine.
  void shutdown();

 private:
  std::string new_job_id() const;
  std::function<void()> canceller(std::string id);
  std::shared_ptr<Job> submit(const GenerateRequest& request, std::shared_ptr<Job> job);
  std::shared_ptr<Job> make_job(std::string id, std::unique_ptr<Reply> reply,
                                std::shared_ptr<EventQueue> events) const;

  engine::Engine& engine_;
  const ServiceOptions options_;
  const Clock::time_point start_ = Clock::now();
  const std::shared_ptr<Metrics> metrics_ = std::make_shared<Metrics>();
  JobStore store_;
  std::atomic<uint16_t> port_ = 0;
  std::atomic<bool> stopping_ = false;
};

}  // namespace rbee::server
