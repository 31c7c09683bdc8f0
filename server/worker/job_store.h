#pragma once
// The jobs that clients may still ask for. Thread-safe.

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/worker/job.h"

namespace rbee::server {

struct JobStoreOptions {
  size_t max_unread = 256;                // jobs whose stream nobody has opened
  std::chrono::seconds unread_time{300};  // from arrival, until such a job is given up
  std::chrono::seconds kept_time{60};     // from the end of a job that was read
};

class JobStore {
 public:
  explicit JobStore(const JobStoreOptions& options) : options_(options) {}

  // False when there are too many unread jobs.
  bool add(std::shared_ptr<Job> job);
  void remove(const std::string& id);
  std::shared_ptr<Job> find(const std::string& id) const;  // null: unknown
  std::vector<std::shared_ptr<Job>> all() const;
  // Of jobs that nobody cancelled.
  bool has_unread() const;
  // Forgets old jobs and returns those among them that still run.
  std::vector<std::shared_ptr<Job>> purge(Clock::time_point now);

 private:
  const JobStoreOptions options_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Job>> jobs_;
  // Of these, those that somebody is to read, or has begun to: at most max_unread. The others are
  // as many as came in a minute, too many to look at for each that comes.
  std::vector<std::shared_ptr<Job>> unread_;
};

}  // namespace rbee::server
