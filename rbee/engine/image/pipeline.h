#pragma once
// From settings to pictures: text, sampling, VAE. Single-threaded; knows no queue.

#include <functional>

#include "rbee/engine/image/decode.h"
#include "rbee/engine/image/settings.h"
#include "rbee/engine/image/text_cache.h"
#include "rbee/tensor/device_mark.h"

namespace rbee::engine {

// Called between steps; those that give a bool may end the run with false.
struct PipelineHooks {
  // Over all batches and passes; of adaptive samplers the number may stay or jump.
  std::function<bool(int32_t steps_done)> step;
  std::function<bool(const io::Pixels& preview, int32_t steps_done, int32_t index)> preview;
  std::function<bool(io::Pixels image, int32_t index)> image;
  std::function<bool()>
      going_on;  // asked while texts are encoded and a picture is decoded; may be empty
  // A picture of so many pixels is decoded next; 0: it is done. May be empty.
  std::function<void(int64_t pixels)> decoding;
  // Between two batches, when nothing of the request is on the device; may be empty. `settings` may
  // be made anew meanwhile.
  std::function<void()> rest;
  // Told of a picture that a network enlarges; may be empty.
  std::function<void(const TileProgress& tiles)> tile;
  // Asked after a step, whether its pictures are taken as they are, and before further pictures
  // begin; may be empty.
  std::function<Hurry()> hurry;
  // What sampling ended with, (batch, h, w, channels), of images `first` on; may be empty.
  std::function<void(const Tensor& latents, int32_t first)> latents;
};

struct PipelineTimes {
  double text_ms = 0;
  double sample_ms = 0;
  double decode_ms = 0;
  double paused_ms = 0;     // that hooks have waited for others; not part of the above
  int32_t evaluations = 0;  // calls of the denoiser
};

class ImagePipeline {
 public:
  // `source` outlives the pipeline. Throws what a device throws that has no memory left.
  explicit ImagePipeline(const ImageSource& source) : source_(source), mark_(*source.device) {}

  // Steps that run() will report.
  int32_t total_steps(const ImageRequest& request, const ImageSettings& settings) const;
  // False when a hook ended it; not when one hurried it, then fewer images may have come. Throws
  // what the parts throw.
  bool run(const ImageRequest& request, const ImageSettings& settings, const PipelineHooks& hooks,
           PipelineTimes& times);
  // For a source whose text encoders have changed.
  void forget_prompts() { prompts_.clear(); }

 private:
  bool run_batches(const ImageRequest& request, const ImageSettings& settings,
                   const PipelineHooks& hooks, PipelineTimes& times);
  bool show_preview(const Tensor& denoised, int32_t steps_done, int32_t index,
                    const PipelineHooks& hooks);
  bool decode(const Tensor& latents, const ImageRequest& request, const ImageSettings& settings,
              int32_t first, const PipelineHooks& hooks, PipelineTimes& times);

  const ImageSource& source_;
  DeviceMark mark_;  // steps that are to be told
  PromptCache prompts_{{}};
  std::unique_ptr<PreviewMap> preview_map_;  // made at the first preview
};

}  // namespace rbee::engine
