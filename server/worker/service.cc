#include "server/worker/service.h"

#include "rbee/core/log.h"
#include "server/http/ids.h"

namespace rbee::server {
namespace {

// Turns an engine's refusal to queue into the client's error. Call it in a catch block: it rethrows
// all other errors.
[[noreturn]] void refuse(const Error& error) {
  using Why = Refused::Why;
  switch (error.code()) {
    case Code::out_of_memory:
      throw Refused(Why::overloaded, error.what());
    case Code::unsupported:
      // The engine itself refuses; other operations name a part of the request that is unsupported.
      if (error.op() == "engine") throw Refused(Why::stopping, error.what());
      throw;
    case Code::device:
      throw Refused(Why::unhealthy, error.what());
    default:
      throw;
  }
}

}  // namespace

std::string WorkerService::model_id() const {
  return options_.model_id.empty() ? state().model : options_.model_id;
}

double WorkerService::uptime_seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

std::string WorkerService::new_job_id() const {
  return "job-" + uuid4();
}

std::function<void()> WorkerService::canceller(std::string id) {
  return [this, id = std::move(id)] { cancel(id); };
}

void WorkerService::admit(const std::shared_ptr<Job>& job, const std::function<void()>& submit) {
  try {
    if (stopping_ || draining_) throw Refused(Refused::Why::stopping, "the worker is stopping");
    if (!store_.add(job)) {
      throw Refused(Refused::Why::overloaded, "too many jobs wait for somebody to read them");
    }
    submit();
  } catch (const Error& error) {
    store_.remove(job->id());
    count_rejected();
    refuse(error);
  } catch (const Refused&) {
    count_rejected();
    throw;
  }
  // A shutdown that began meanwhile has missed this job.
  if (stopping_) job->stop();
}

WorkerInfo WorkerService::info() const {
  const State now = state();
  return {.id = options_.worker_id,
          .model_id = options_.model_id.empty() ? now.model : options_.model_id,
          .device = now.device,
          .port = port_,
          .status = stopping_ || draining_ || !now.healthy ? "stopping"
                    : now.busy                             ? "busy"
                                                           : "ready",
          .implementation = options_.implementation,
          .version = options_.version,
          .group_ranks = now.group_ranks,
          .rank_bytes = now.rank_bytes,
          .host_cache_bytes = now.host_cache_bytes};
}

void WorkerService::tick(Clock::time_point now) {
  for (const std::shared_ptr<Job>& job : store_.purge(now)) {
    log(LogLevel::info, "nobody read a job", {{"job_id", job->id()}});
    cancel(job->id());
  }
}

void WorkerService::shutdown() {
  stopping_ = true;
  for (const std::shared_ptr<Job>& job : store_.all()) {
    job->stop();
  }
}

}  // namespace rbee::server
