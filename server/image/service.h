#pragma once
// The image worker behind its routes: turns requests into jobs of the engine.

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rbee/engine/api/image.h"
#include "server/http/router.h"
#include "server/image/job.h"
#include "server/image/metrics.h"
#include "server/image/upscale.h"
#include "server/wire/image_body.h"
#include "server/worker/service.h"
#include "server/worker/side_work.h"

namespace rbee::server {

// The current work and its progress.
struct WorkProgress {
  bool busy = false;
  int32_t jobs = 0;  // running and waiting
  std::string job{};
  ImageProgressEvent progress{};
  std::string preview{};   // base64 of a PNG; empty: none
  int32_t preview_id = 0;  // 1 for a request's first one
};
// The same for one request.
struct TaskProgress {
  bool queued = false;
  bool completed = false;   // with or without success
  WorkProgress progress{};  // busy: it runs
};

class ImageService;
using ImageRoute = ServiceRoute<ImageService>;

class ImageService final : public WorkerService {
 public:
  // The engine outlives the service; the service outlives the server that calls it.
  ImageService(engine::ImageEngine& engine, ServiceOptions options)
      : WorkerService(std::move(options)), engine_(engine) {}

  // Makes the reply from the answer's destination. Functions that take it throw Refused, or Error
  // for values that the engine does not accept.
  template <typename To>
  using MakeReply = std::function<std::unique_ptr<ImageReply>(std::shared_ptr<To> to)>;
  // A job whose answer is read through take_events().
  std::shared_ptr<Job> create_job(const ImageBody& body, const MakeReply<EventQueue>& make);
  // An answer that goes to a queue of events, or to one response.
  template <typename To>
  std::shared_ptr<To> start(const ImageBody& body, const MakeReply<To>& make) {
    std::string id = new_job_id();
    auto to = std::make_shared<To>(canceller(id));
    auto reply = make(to);
    submit(body, make_job(std::move(id), std::move(reply), nullptr));
    return to;
  }
  // For a request without a preview setting: as many as polling clients expect.
  void set_default_previews(ImageBody& body) const;

  // Enlarges pictures by a network or a filter. form: makes the answer from their PNG files.
  std::shared_ptr<DelayedResponse> enlarged(UpscaleOrder wanted, UpscaleQueue::Form form);

  // The result of `submit` for this body. If the body has pictures, it runs on a side thread, so
  // that decoding does not delay other clients. Throws Refused if too much waits for that.
  Response prepare(ImageBody body, std::function<Response(ImageBody)> submit);
  // The result of `work`, run on such a thread; throws as prepare().
  Response beside(const std::string& client, std::function<Response()> work);

  void cancel(const std::string& id) override;
  // Cancels the running job, or else the picture being enlarged; in both cases the client's own
  // first.
  void interrupt(engine::Hurry how, std::string_view client);
  // Of the running job, chosen as above, else of a picture being enlarged, if there is one.
  WorkProgress progress(std::string_view client) const;
  TaskProgress task_progress(std::string_view task) const;
  const engine::ImageModelInfo& model() const { return engine_.model(); }
  // Bytes, total and free; 0 without a device that has its own memory.
  std::pair<int64_t, int64_t> device_memory() const;
  std::vector<engine::LoraName> loras() const { return engine_.loras(); }
  std::vector<std::pair<std::string, int32_t>> upscalers() const;  // networks and their factors

  std::string health_json() const override;
  std::string metrics() const override;
  Page page() const override;

 private:
  State state() const override;
  std::string enlarge(const std::string& image, const UpscaleOrder& wanted,
                      const engine::UpscaleHooks& hooks) const;
  void count_rejected() override { metrics_->count_rejected(); }
  std::shared_ptr<ImageJob> submit(const ImageBody& body, std::shared_ptr<ImageJob> job);
  std::shared_ptr<ImageJob> make_job(std::string id, std::unique_ptr<ImageReply> reply,
                                     std::shared_ptr<EventQueue> events) const;
  // The job that has run, or else waited, the longest, the client's own first; null: none.
  std::shared_ptr<ImageJob> current(std::string_view client) const;

  engine::ImageEngine& engine_;
  const std::shared_ptr<ImageMetrics> metrics_ = std::make_shared<ImageMetrics>();
  mutable std::mutex mutex_;
  mutable std::vector<std::weak_ptr<ImageJob>> recent_;  // oldest first
  mutable io::LargePictures large_pictures_;
  UpscaleQueue upscaler_{
      [this](const std::string& image, const UpscaleOrder& wanted,
             const engine::UpscaleHooks& hooks) { return enlarge(image, wanted, hooks); }};
  SideWork preparing_{{.threads = 2, .on_refused = [this] { count_rejected(); }}};
};

}  // namespace rbee::server
