#pragma once
// One request from its arrival to its last event: turns the engine's events into the client's.

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "rbee/engine/engine.h"
#include "server/llm/metrics.h"
#include "server/llm/reply.h"

namespace rbee::server {

using Clock = std::chrono::steady_clock;

enum class JobState : uint8_t { queued, running, completed, failed, cancelled };

class Job final : public engine::EventSink {
 public:
  // events: handed to the first reader; null when the client that sent the request has the reply.
  // metrics outlives the job.
  Job(std::string id, std::unique_ptr<Reply> reply, std::shared_ptr<EventQueue> events,
      int64_t memory_bytes, std::shared_ptr<Metrics> metrics);

  const std::string& id() const { return id_; }
  JobState state() const;
  bool unread() const;
  Clock::time_point created() const { return created_; }
  std::optional<Clock::time_point> ended() const;
  // The stream, once; null afterwards.
  std::shared_ptr<EventQueue> take_events();
  // Ends the job for the client without waiting for the engine, whose events are ignored from then
  // on.
  void end_with(Code code, std::string_view message);

  void on_started(const engine::Started& event) noexcept override;
  void on_token(const engine::TokenText& event) noexcept override;
  void on_finished(const engine::Finished& event) noexcept override;
  void on_failed(const engine::Failed& event) noexcept override;

 private:
  bool over() const { return ended_.has_value(); }
  double seconds_since_arrival() const;
  void end_locked(JobState state, const engine::Finished* finished);
  void error_locked(Code code, std::string_view message);

  const std::string id_;
  const int64_t memory_bytes_;
  const std::shared_ptr<Metrics> metrics_;
  const Clock::time_point created_ = Clock::now();

  mutable std::mutex mutex_;
  std::unique_ptr<Reply> reply_;
  std::shared_ptr<EventQueue> events_;
  JobState state_ = JobState::queued;
  std::optional<Clock::time_point> ended_;
  double first_token_ = -1;  // seconds after arrival
  uint64_t seed_ = 0;
};

}  // namespace rbee::server
