#include "server/image/job.h"

#include "rbee/io/image/base64.h"
#include "server/http/clock.h"

namespace rbee::server {
namespace {

Outcome outcome_of(JobState state) {
  if (state == JobState::completed) return Outcome::completed;
  return state == JobState::cancelled ? Outcome::cancelled : Outcome::failed;
}

}  // namespace

ImageJob::ImageJob(std::string id, std::unique_ptr<ImageReply> reply,
                   std::shared_ptr<EventQueue> events, std::shared_ptr<ImageMetrics> metrics)
    : Job(std::move(id), std::move(events)),
      metrics_(std::move(metrics)),
      reply_(std::move(reply)) {}

ImageJob::Snapshot ImageJob::snapshot() const {
  const std::lock_guard lock(mutex_);
  return {.state = shown_, .progress = progress_, .preview = preview_};
}

void ImageJob::on_started(const engine::ImageStarted& event) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  start();
  shown_ = JobState::running;
  progress_.total = event.steps;
  quietly([&] {
    reply_->started({.job_id = id(),
                     .model = event.model,
                     .started_at = iso8601(std::chrono::system_clock::now()),
                     .seed = event.seed,
                     .width = event.width,
                     .height = event.height,
                     .steps = event.steps,
                     .count = event.count,
                     .sampler = event.sampler,
                     .schedule = event.schedule,
                     .guidance_scale = event.guidance_scale});
  });
}

void ImageJob::on_progress(const engine::ImageProgress& event) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  progress_ = {.step = event.step,
               .total = event.total,
               .seconds = event.seconds,
               .steps_per_second = event.steps_per_second,
               .images_per_second = event.images_per_second};
  quietly([&] { reply_->progress(progress_); });
}

void ImageJob::on_preview(const engine::ImagePreview& event) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  quietly([&] {
    preview_ = io::encode_base64(event.png);
    reply_->preview(progress_, preview_, event.index);
  });
}

void ImageJob::on_image(const engine::ImageReady& event) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  quietly([&] {
    images_.push_back({.base64 = io::encode_base64(event.png),
                       .parameters = event.parameters,
                       .seed = event.seed,
                       .index = event.index,
                       .width = event.width,
                       .height = event.height});
    reply_->image(images_.back());
  });
}

void ImageJob::on_finished(const engine::ImageFinished& event) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  quietly([&] {
    if (event.cancelled) return fail(Code::cancelled, "the job was cancelled");
    finish(JobState::completed);
    reply_->end(images_, {.text_ms = event.text_ms,
                          .sample_ms = event.sample_ms,
                          .decode_ms = event.decode_ms,
                          .total_ms = seconds_since_arrival() * 1000});
    let_go();
  });
}

void ImageJob::on_failed(const engine::ImageFailed& event) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  quietly([&] { fail(event.code, event.message); });
}

void ImageJob::fail(Code code, std::string_view message) {
  finish(code == Code::cancelled ? JobState::cancelled : JobState::failed);
  reply_->error(wire_error(code), message);
  let_go();
}

// Before the client is told, who may ask for the figures at once.
void ImageJob::finish(JobState state) {
  end(state);
  shown_ = state;
  metrics_->count(outcome_of(state), seconds_since_arrival());
}

// A job is kept for a while after its end; its pictures are with the client.
void ImageJob::let_go() {
  images_ = {};
  preview_ = {};
}

}  // namespace rbee::server
