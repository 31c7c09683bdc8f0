#include "rbee/engine/image/events.h"

#include "rbee/core/log.h"
#include "rbee/engine/image/upscale.h"

namespace rbee::engine {

ImageStarted started_event(const DiffusionJob& job, const ImageModelInfo& model, int32_t total) {
  const ImageSettings& settings = *job.settings;
  const models::Upscaler* network = settings.final_network;
  const auto scale = network != nullptr ? static_cast<int32_t>(network->scale()) : 1;
  return {.model = model.id,
          .seed = settings.seed,
          .width = settings.final_width * scale,
          .height = settings.final_height * scale,
          .steps = total,
          .count = job.request.count,
          .sampler = std::string(diffusion::name(settings.sampler)),
          .schedule = std::string(diffusion::name(settings.schedule)),
          .guidance_scale = settings.guidance};
}

ImageReady image_event(const DiffusionJob& job, const ImageModelInfo& model,
                       const io::Pixels& image, int32_t index) {
  ImageReady ready;
  ready.parameters = parameters_text(job.request, *job.settings, model, index);
  if (!io::parameters_fit(job.request.encoding.format, ready.parameters)) {
    log(LogLevel::warn, "the settings are too long for a file of this kind, which has none",
        {{"job_id", job.request.job_id}, {"bytes", cat(ready.parameters.size())}});
  }
  ready.file = io::encode_image(image, job.request.encoding, ready.parameters);
  ready.format = job.request.encoding.format;
  ready.seed = seed_of(*job.settings, index);
  ready.index = index;
  ready.width = image.width;
  ready.height = image.height;
  return ready;
}

}  // namespace rbee::engine
