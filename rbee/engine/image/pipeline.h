#pragma once
// From settings to pictures: text, sampling, VAE. Single-threaded; has no queue.

#include <functional>

#include "rbee/engine/image/decode.h"
#include "rbee/engine/image/settings.h"
#include "rbee/engine/image/text_cache.h"
#include "rbee/tensor/device_mark.h"

namespace rbee::engine {

// Called between steps; a hook that returns false ends the run.
struct PipelineHooks {
  // Counts over all batches and passes; with adaptive samplers the number may stay or jump.
  std::function<bool(int32_t steps_done)> step;
  std::function<bool(const io::Pixels& preview, int32_t steps_done, int32_t index)> preview;
  std::function<bool(io::Pixels image, int32_t index)> image;
  std::function<bool()>
      going_on;  // called while texts are encoded and a picture is decoded; may be empty
  // A picture of this many pixels is decoded next; 0: it is done. May be empty.
  std::function<void(int64_t pixels)> decoding;
  // Called between two batches, when the request has nothing on the device; may be empty.
  // `settings` may be rebuilt meanwhile.
  std::function<void()> rest;
  // Does work that needs no device; others may have the device meanwhile. `last`: the request does
  // not need the device afterwards either. Empty: it is done at once.
  std::function<void(const std::function<void()>& work, bool last)> beside;
  // Progress of a picture that a network enlarges; may be empty.
  std::function<void(const TileProgress& tiles)> tile;
  // Called after a step, to take its pictures as they are, and before further pictures begin; may
  // be empty.
  std::function<Hurry()> hurry;
  // The final latents, (batch, h, w, channels), of images from `first` on; may be empty.
  std::function<void(const Tensor& latents, int32_t first)> latents;
};

struct PipelineTimes {
  double text_ms = 0;
  double sample_ms = 0;
  double decode_ms = 0;
  double paused_ms = 0;     // time that hooks waited for others; not part of the above
  int32_t evaluations = 0;  // calls of the denoiser
};

class ImagePipeline {
 public:
  // `source` must outlive the pipeline. Throws what a device without free memory throws.
  explicit ImagePipeline(const ImageSource& source) : source_(source), mark_(*source.device) {}

  // Number of steps that run() will report.
  int32_t total_steps(const ImageRequest& request, const ImageSettings& settings) const;
  // False if a hook ended it. If one hurried it, the result is true, with perhaps fewer images.
  // Throws what the parts throw.
  bool run(const ImageRequest& request, const ImageSettings& settings, const PipelineHooks& hooks,
           PipelineTimes& times);
  // Call it after a change of the source's text encoders.
  void forget_prompts() { prompts_.clear(); }

 private:
  bool run_batches(const ImageRequest& request, const ImageSettings& settings,
                   const PipelineHooks& hooks, PipelineTimes& times);
  bool show_preview(const Tensor& denoised, int32_t steps_done, int32_t index,
                    const PipelineHooks& hooks);
  bool decode(const Tensor& latents, const ImageRequest& request, const ImageSettings& settings,
              int32_t first, const PipelineHooks& hooks, PipelineTimes& times);

  const ImageSource& source_;
  DeviceMark mark_;  // steps to report
  PromptCache prompts_{{}};
  std::unique_ptr<PreviewMap> preview_map_;  // made at the first preview
};

}  // namespace rbee::engine
