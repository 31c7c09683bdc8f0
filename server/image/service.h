#pragma once
// The image worker behind its routes: turns requests into jobs of the engine.

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rbee/engine/image_api.h"
#include "server/contract/image_requests.h"
#include "server/image/job.h"
#include "server/image/metrics.h"
#include "server/image/upscale.h"
#include "server/worker/service.h"
#include "server/worker/side_work.h"

namespace rbee::server {

class ImageService final : public WorkerService {
 public:
  // The engine outlives the service; the service outlives the server that calls it.
  ImageService(engine::ImageEngine& engine, ServiceOptions options)
      : WorkerService(std::move(options)), engine_(engine) {}

  // Each throws Refused, or Error for values that the engine does not take.
  std::shared_ptr<Job> create_job(const ImageJobBody& body);  // read through take_events()
  std::shared_ptr<EventQueue> openai_stream(const ImageBody& body);
  std::shared_ptr<DelayedResponse> openai_images(const ImageBody& body);
  std::shared_ptr<DelayedResponse> sdapi_images(ImageBody body);

  // Throws invalid_argument naming the field for another model's name than the one that is served,
  // which may have a file's ending and AUTOMATIC1111's hash behind it. Empty: no name.
  void check_served(const char* field, std::string_view name) const;

  std::shared_ptr<DelayedResponse> enlarged(SdapiUpscale wanted);

  // What `submit` answers for a request with this body; where that has pictures, from a thread
  // beside the connections', so that others are served while they are decoded. Throws Refused where
  // too much waits for that.
  Response prepare(const ImageBody& body, std::function<Response()> submit);
  // What `work` answers, from such a thread; throws as prepare().
  Response beside(const std::string& client, std::function<Response()> work);

  void cancel(const std::string& id) override;
  // Cancels the job that runs, the client's own rather than another one, else a picture that is
  // being enlarged, likewise.
  void interrupt(engine::Hurry how, std::string_view client);
  // Of the job that runs, as above, else of a picture that is being enlarged, if there is one.
  SdapiProgress progress(std::string_view client) const;
  SdapiTaskProgress task_progress(std::string_view task) const;
  std::string model() const { return model_id(); }
  // The settings in a PNG. Throws Error for what is no base64, and for settings that are no
  // numbers.
  static SdapiPngInfo png_info(std::string_view base64);
  SdapiEmbeddings embeddings() const;
  // Bytes, in all and free; 0 without a device that has memory of its own.
  std::pair<int64_t, int64_t> device_memory() const;
  std::vector<engine::LoraName> loras() const { return engine_.loras(); }
  std::vector<std::pair<std::string, int32_t>> upscalers() const;  // networks and their factors
  const std::vector<std::string>& controls() const { return engine_.model().controls; }

  std::string health_json() const override;
  std::string metrics() const override;
  Page page() const override;

 private:
  State state() const override;
  std::string enlarge(const std::string& image, const SdapiUpscale& wanted,
                      const engine::UpscaleHooks& hooks) const;
  // Where a job or a client that polls asks for no other.
  int32_t preview_interval(const ImageBody& body) const;
  void count_rejected() override { metrics_->count_rejected(); }
  std::shared_ptr<ImageJob> submit(const ImageBody& body, std::shared_ptr<ImageJob> job);
  std::shared_ptr<ImageJob> make_job(std::string id, std::unique_ptr<ImageReply> reply,
                                     std::shared_ptr<EventQueue> events) const;
  // The job that runs, or else waits, the longest, of the client's own if there is one; null: none.
  std::shared_ptr<ImageJob> current(std::string_view client) const;

  engine::ImageEngine& engine_;
  const std::shared_ptr<ImageMetrics> metrics_ = std::make_shared<ImageMetrics>();
  mutable std::mutex mutex_;
  mutable std::vector<std::weak_ptr<ImageJob>> recent_;  // oldest first
  Upscaler upscaler_{
      [this](const std::string& image, const SdapiUpscale& wanted,
             const engine::UpscaleHooks& hooks) { return enlarge(image, wanted, hooks); }};
  SideWork preparing_{{.threads = 2, .on_refused = [this] { count_rejected(); }}};
};

}  // namespace rbee::server
