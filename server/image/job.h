#pragma once
// One request for pictures: turns the engine's events into the client's.

#include <memory>
#include <string>
#include <vector>

#include "rbee/engine/api/image.h"
#include "server/image/metrics.h"
#include "server/image/reply.h"
#include "server/wire/image_names.h"
#include "server/worker/job.h"

namespace rbee::server {

class ImageJob final : public Job, public engine::ImageSink {
 public:
  // events: see Job. metrics must outlive the job.
  ImageJob(std::string id, std::unique_ptr<ImageReply> reply, std::shared_ptr<EventQueue> events,
           std::shared_ptr<ImageMetrics> metrics);

  // Sets what its trace says: the model's name. Call it before the engine has the job.
  void describe(const std::string& model);
  // Sets the client, a second name for progress requests, and what is held until the job's end.
  // Call it before the engine has the job.
  void belong_to(std::string client, std::string task, std::shared_ptr<const void> held);
  // What its request calls its fields, for messages. Call it before the engine has the job.
  void name_fields(ImageNames names) { names_ = std::move(names); }
  const std::string& client() const { return client_; }
  bool is(std::string_view task) const { return task == id() || (!task_.empty() && task == task_); }

  // The job's progress, and its last preview as base64.
  struct Snapshot {
    JobState state = JobState::queued;
    ImageProgressEvent progress;
    std::string preview;
    int32_t previews = 0;  // so far
  };
  Snapshot snapshot() const;
  bool takes_unfinished() const { return reply_->takes_unfinished(); }

  void on_started(const engine::ImageStarted& event) noexcept override;
  void on_progress(const engine::ImageProgress& event) noexcept override;
  void on_preview(const engine::ImagePreview& event) noexcept override;
  void on_image(engine::ImageReady&& event) noexcept override;
  void on_finished(const engine::ImageFinished& event) noexcept override;
  void on_failed(const engine::ImageFailed& event) noexcept override;

 private:
  using Job::fail;
  void fail(JobState state, const WireError& error, std::string_view message) override;
  void finish(JobState state, std::string_view error);
  void let_go();

  const std::shared_ptr<ImageMetrics> metrics_;
  const std::unique_ptr<ImageReply> reply_;
  std::vector<ImageResult> images_;
  JobState shown_ = JobState::queued;
  ImageProgressEvent progress_;
  std::string preview_;
  int32_t previews_ = 0;
  std::string client_, task_;
  std::shared_ptr<const void> held_;
  ImageNames names_;
  std::string operation_;  // for the trace
};

}  // namespace rbee::server
