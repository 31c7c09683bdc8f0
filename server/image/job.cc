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
  return {.state = shown_, .progress = progress_, .preview = preview_, .previews = previews_};
}

void ImageJob::describe(const std::string& model) {
  if (!trace_.on()) return;
  operation_ = cat("generate_content ", model);
  trace_.set("gen_ai.operation.name", "generate_content");
  trace_.set("gen_ai.output.type", "image");
  trace_.set("gen_ai.request.model", model);
  trace_.set("gen_ai.response.id", id());
}

void ImageJob::belong_to(std::string client, std::string task, std::shared_ptr<const void> held) {
  client_ = std::move(client);
  task_ = std::move(task);
  held_ = std::move(held);
}

void ImageJob::on_started(const engine::ImageStarted& event) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  start();
  shown_ = JobState::running;
  progress_.total = event.steps;
  quietly([&] {
    trace_.stage("text");
    trace_.set("gen_ai.response.model", event.model);
    trace_.set("gen_ai.request.choice.count", int64_t{event.count});
    trace_.set("gen_ai.request.seed", static_cast<int64_t>(event.seed));
    trace_.set("rbee.image.steps", int64_t{event.steps});
    trace_.set("rbee.image.width", int64_t{event.width});
    trace_.set("rbee.image.height", int64_t{event.height});
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
               .images_per_second = event.images_per_second,
               .tile = event.tiles.done,
               .tiles = event.tiles.total};
  quietly([&] { reply_->progress(progress_); });
}

void ImageJob::on_preview(const engine::ImagePreview& event) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  quietly([&] {
    preview_ = io::encode_base64(event.png);
    ++previews_;
    reply_->preview(progress_, preview_, event.index);
  });
}

void ImageJob::on_image(engine::ImageReady&& event) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  quietly([&] {
    images_.push_back({.file = std::move(event.file),
                       .format = io::name(event.format),
                       .parameters = std::move(event.parameters),
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
    trace_.stage_after("steps", event.text_ms);
    trace_.stage_after("decode", event.sample_ms);
    finish(JobState::completed, {});
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
  quietly([&] { fail(event.code, names_.renamed(event.message)); });
}

void ImageJob::fail(JobState state, const WireError& error, std::string_view message) {
  finish(state, error.code);
  reply_->error(error, message);
  let_go();
}

// Before the client is told, who may ask for the figures at once.
void ImageJob::finish(JobState state, std::string_view error) {
  end(state);
  trace_.finish(operation_, error);
  shown_ = state;
  metrics_->count(outcome_of(state), seconds_since_arrival());
}

// A job is kept for a while after its end; its pictures are with the client.
void ImageJob::let_go() {
  images_ = {};
  preview_ = {};
  held_ = {};
}

}  // namespace rbee::server
