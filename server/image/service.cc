#include "server/image/service.h"

#include <algorithm>

#include "rbee/core/experimental.h"
#include "rbee/io/image/base64.h"
#include "rbee/io/image/encode.h"
#include "server/image/page.h"

namespace rbee::server {
namespace {

constexpr int32_t kPreviewInterval = 5;  // 1 of fewer steps
constexpr uint8_t kHalfOpaque = 128;

std::string file_of(const SentImage& sent, std::string_view field) {
  if (!sent.base64) return sent.data;
  std::string out = io::decode_base64(sent.data, field);
  // One that was sent without bytes would count as none.
  check(sent.empty() || !out.empty(), field, "it is empty");
  return out;
}

// Whether some pixel of the file is; not of what is no picture.
bool is_transparent(const std::string& file) try {
  const io::Pixels pixels = io::decode_image(file, "image");
  if (pixels.channels != 4) return false;
  for (size_t i = 3; i < pixels.values.size(); i += 4) {
    if (pixels.values[i] < kHalfOpaque) return true;
  }
  return false;
} catch (const Error&) {
  return false;
}

engine::ImageRequest to_engine(const ImageBody& body, const std::string& job_id) {
  engine::ImageRequest request = body.settings;
  request.job_id = job_id;
  request.client = body.client;
  request.init_image = file_of(body.init_image, "init_image");
  request.mask_image = file_of(body.mask_image, "mask_image");
  if (body.mask_of_init && request.mask_image.empty() && is_transparent(request.init_image)) {
    request.mask_image = request.init_image;
    if (!body.given.has(&engine::ImageRequest::strength)) request.strength = 1;
  }
  for (const SentControl& sent : body.controls) {
    request.controls.push_back(sent.use);
    request.controls.back().image = file_of(sent.image, "control.image");
  }
  if (body.stream) request.preview_count = body.partials.value_or(0);
  return request;
}

}  // namespace

std::shared_ptr<ImageJob> ImageService::make_job(std::string id, std::unique_ptr<ImageReply> reply,
                                                 std::shared_ptr<EventQueue> events) const {
  return std::make_shared<ImageJob>(std::move(id), std::move(reply), std::move(events), metrics_);
}

std::shared_ptr<ImageJob> ImageService::submit(const ImageBody& body,
                                               std::shared_ptr<ImageJob> job) {
  job->describe(model_id());
  job->belong_to(body.client, body.task, body.room);
  job->name_fields(body.names);
  admit(job, [&] {
    try {
      engine_.submit(to_engine(body, job->id()), job);
    } catch (const Error& error) {
      throw body.names.renamed(error);
    }
  });
  const std::lock_guard lock(mutex_);
  std::erase_if(recent_, [](const std::weak_ptr<ImageJob>& entry) { return entry.expired(); });
  recent_.push_back(job);
  return job;
}

void ImageService::set_default_previews(ImageBody& body) const {
  const int32_t sent = body.settings.steps;
  const int32_t steps = sent > 0 ? sent : engine_.model().default_steps;
  body.set_default(&engine::ImageRequest::preview_interval,
                   steps < kPreviewInterval ? 1 : kPreviewInterval);
}

std::shared_ptr<Job> ImageService::create_job(const ImageBody& body,
                                              const MakeReply<EventQueue>& make) {
  std::string id = new_job_id();
  auto events = std::make_shared<EventQueue>(canceller(id));
  auto reply = make(events);
  return submit(body, make_job(std::move(id), std::move(reply), std::move(events)));
}

std::shared_ptr<DelayedResponse> ImageService::enlarged(UpscaleOrder wanted,
                                                        UpscaleQueue::Form form) {
  std::vector<std::string> known(plain_upscalers().begin(), plain_upscalers().end());
  for (const auto& [name, scale] : upscalers()) known.push_back(name);
  if (std::ranges::count(known, wanted.upscaler) == 0) {
    std::string listed;
    for (const std::string& name : known) listed += cat(listed.empty() ? "" : ", ", name);
    fail(Code::invalid_argument, "upscaler_1", "\"", wanted.upscaler, "\" is none of ", listed);
  }
  return upscaler_.submit(std::move(wanted), std::move(form));
}

std::string ImageService::enlarge(const std::string& image, const UpscaleOrder& wanted,
                                  const engine::UpscaleHooks& hooks) const {
  const auto by_network = [&](const std::string& network, io::Pixels picture) {
    return engine_.upscale(network, std::move(picture), hooks);
  };
  return upscaled(image, wanted, by_network, large_pictures_);
}

std::vector<std::pair<std::string, int32_t>> ImageService::upscalers() const {
  std::vector<std::pair<std::string, int32_t>> out;
  for (const engine::UpscalerInfo& each : engine_.model().upscalers) {
    out.emplace_back(each.name, each.scale);
  }
  return out;
}

Response ImageService::prepare(ImageBody body, std::function<Response(ImageBody)> submit) {
  if (body.init_image.empty() && body.controls.empty()) return submit(std::move(body));
  const auto sent = std::make_shared<ImageBody>(std::move(body));  // functions are copied
  return beside(sent->client,
                [sent, submit = std::move(submit)] { return submit(std::move(*sent)); });
}

Response ImageService::beside(const std::string& client, std::function<Response()> work) {
  const auto traced = [work = std::move(work), span = current_span()] {
    const TraceScope scope(span);
    return work();
  };
  Response response;
  response.later = preparing_.submit({.client = client, .work = traced});
  return response;
}

void ImageService::cancel(const std::string& id) {
  engine_.cancel(id);
}

std::shared_ptr<ImageJob> ImageService::current(std::string_view client) const {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<ImageJob> best;
  int best_rank = 0;
  for (const std::weak_ptr<ImageJob>& entry : recent_) {
    std::shared_ptr<ImageJob> job = entry.lock();
    if (!job) continue;
    const JobState state = job->state();
    if (state != JobState::running && state != JobState::queued) continue;
    const int rank = (job->client() == client ? 2 : 0) + (state == JobState::running ? 1 : 0) + 1;
    if (rank > best_rank) {
      best_rank = rank;
      best = std::move(job);
    }
  }
  return best;
}

void ImageService::interrupt(engine::Hurry how, std::string_view client) {
  const std::shared_ptr<ImageJob> job = current(client);
  if (!job) return upscaler_.interrupt(client);
  if (job->takes_unfinished()) {
    engine_.hurry(job->id(), how);
  } else {
    cancel(job->id());
  }
}

WorkProgress ImageService::progress(std::string_view client) const {
  const engine::ImageStats stats = engine_.stats();
  const std::shared_ptr<ImageJob> job = current(client);
  const int32_t jobs = stats.running + stats.waiting;
  if (!job) {
    const std::optional<engine::TileProgress> tiles = upscaler_.progress(client);
    if (!tiles) return {.jobs = jobs};
    return {.busy = true,
            .jobs = jobs + 1,
            .job = "extra-single-image",
            .progress = {.tile = tiles->done, .tiles = tiles->total}};
  }
  ImageJob::Snapshot now = job->snapshot();
  return {.busy = true,
          .jobs = jobs,
          .job = job->id(),
          .progress = now.progress,
          .preview = std::move(now.preview),
          .preview_id = now.previews};
}

TaskProgress ImageService::task_progress(std::string_view task) const {
  std::shared_ptr<ImageJob> job;
  {
    const std::lock_guard lock(mutex_);
    for (const std::weak_ptr<ImageJob>& entry : recent_) {
      std::shared_ptr<ImageJob> each = entry.lock();
      if (each && each->is(task)) job = std::move(each);  // the last one of that name
    }
  }
  TaskProgress out;
  if (!job) return out;
  ImageJob::Snapshot now = job->snapshot();
  out.queued = now.state == JobState::queued;
  out.completed = !out.queued && now.state != JobState::running;
  out.progress = {.busy = now.state == JobState::running,
                  .job = job->id(),
                  .progress = now.progress,
                  .preview = std::move(now.preview),
                  .preview_id = now.previews};
  return out;
}

std::pair<int64_t, int64_t> ImageService::device_memory() const {
  const engine::ImageStats stats = engine_.stats();
  return {stats.device_memory_bytes, stats.device_memory_free_bytes};
}

WorkerService::State ImageService::state() const {
  const engine::ImageModelInfo& model = engine_.model();
  const engine::ImageStats stats = engine_.stats();
  return {.model = model.id,
          .device = model.device,
          .busy = stats.running + stats.waiting > 0 || preparing_.busy(),
          .load = stats.running + stats.waiting,
          .healthy = stats.healthy,
          .memory = {.used = model.weight_bytes,
                     .device = stats.device_memory_bytes,
                     .device_free = stats.device_memory_free_bytes}};
}

std::string ImageService::health_json() const {
  const engine::ImageModelInfo& model = engine_.model();
  return to_json(ImageHealth{.healthy = healthy(),
                             .model = model_id(),
                             .architecture = model.architecture,
                             .dtype = model.dtype,
                             .device = model.device,
                             .default_width = model.default_width,
                             .default_height = model.default_height,
                             .default_steps = model.default_steps,
                             .inpainting = model.inpainting,
                             .parameters = model.parameters,
                             .memory_bytes = model.weight_bytes,
                             .uptime_seconds = uptime_seconds(),
                             .capture_refusal = model.capture_refusal,
                             .experimental = std::string(experimental(model.device))});
}

std::string ImageService::metrics() const {
  return metrics_->render(engine_.model(), engine_.stats(), uptime_seconds());
}

Page ImageService::page() const {
  return {.html = std::string(kImagePage), .policy = std::string(kImagePagePolicy)};
}

}  // namespace rbee::server
