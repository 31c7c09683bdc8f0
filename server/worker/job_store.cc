#include "server/worker/job_store.h"

#include <algorithm>

namespace rbee::server {

bool JobStore::add(std::shared_ptr<Job> job) {
  const std::lock_guard lock(mutex_);
  if (job->unread()) {
    std::erase_if(unread_, [](const auto& one) { return !one->unread(); });
    if (unread_.size() >= options_.max_unread) return false;
    unread_.push_back(job);
  }
  jobs_.emplace(job->id(), std::move(job));
  return true;
}

void JobStore::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  jobs_.erase(id);
  std::erase_if(unread_, [&](const auto& job) { return job->id() == id; });
}

std::shared_ptr<Job> JobStore::find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Job>> JobStore::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Job>> jobs;
  jobs.reserve(jobs_.size());
  for (const auto& [id, job] : jobs_) jobs.push_back(job);
  return jobs;
}

bool JobStore::has_unread() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(unread_, [](const auto& job) {
    return job->unread() && job->state() != JobState::cancelled;
  });
}

std::vector<std::shared_ptr<Job>> JobStore::purge(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Job>> running;
  std::erase_if(jobs_, [&](const auto& entry) {
    const std::shared_ptr<Job>& job = entry.second;
    const auto ended = job->ended();
    const bool old = job->unread() ? now - job->created() >= options_.unread_time
                                   : ended && now - *ended >= options_.kept_time;
    if (old && !ended) running.push_back(job);
    return old;
  });
  std::erase_if(unread_, [&](const auto& job) { return !jobs_.contains(job->id()); });
  return running;
}

}  // namespace rbee::server
