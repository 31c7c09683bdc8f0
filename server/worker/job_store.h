#pragma once
// The jobs that clients may still read. Thread-safe.

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/worker/job.h"

namespace rbee::server {

struct JobStoreOptions {
  size_t max_unread = 256;                // jobs whose stream was never opened
  std::chrono::seconds unread_time{300};  // from arrival until such a job is dropped
  std::chrono::seconds kept_time{60};     // from the end of a job that was read
};

class JobStore {
 public:
  explicit JobStore(const JobStoreOptions& options) : options_(options) {}

  // False if there are too many unread jobs.
  bool add(std::shared_ptr<Job> job);
  void remove(const std::string& id);
  std::shared_ptr<Job> find(const std::string& id) const;  // null: unknown
  std::vector<std::shared_ptr<Job>> all() const;
  // Ignores cancelled jobs.
  bool has_unread() const;
  // Forgets old jobs and returns those that still run.
  std::vector<std::shared_ptr<Job>> purge(Clock::time_point now);

 private:
  const JobStoreOptions options_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Job>> jobs_;
  // Of these, jobs with a stream to be read or being read: at most max_unread. All jobs of a minute
  // would be too many to search at every new one.
  std::vector<std::shared_ptr<Job>> unread_;
};

}  // namespace rbee::server
