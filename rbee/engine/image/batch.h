#pragma once
// Samples one batch of a request's pictures: from noise, or from a picture, to latents. A batch has
// one pass, or two if a second one enlarges the first one's result.

#include <cstdint>
#include <functional>

#include "rbee/engine/image/pipeline.h"
#include "rbee/engine/image/upscale.h"

namespace rbee::engine {

// Thrown if PipelineHooks::going_on said no: between two texts, passes or parts of a picture.
struct PipelineEnded {};
void end_if_asked(const PipelineHooks& hooks);
UpscaleOptions upscaling(const PipelineHooks& hooks);

// Whether the VAE works in tiles from the start.
bool is_tiled(const ImageSource& source, const ImageRequest& request);

// What to sample; all must outlive the call.
struct ImageBatch {
  const ImageSource& source;
  const ImageRequest& request;
  const ImageSettings& settings;
  const RequestPrompts& prompts;
  const PromptStates& states;
  int32_t first = 0;  // image of the request
  int32_t count = 0;  // images
};

enum class BatchNext : uint8_t { step, take, drop };
// steps: how many steps were done since the last call
using AfterBatchStep = std::function<BatchNext(const Tensor& denoised, int32_t steps)>;

// Steps of a batch's passes together.
int32_t batch_steps(const ImageSource& source, const ImageRequest& request,
                    const ImageSettings& settings);

// Returns latents, (count, h, w, channels). If `after_step` dropped the pictures, they are
// undefined; if it took them as they were, they are the denoised latents, without a second pass.
// Calls only those of `hooks` that come between two passes.
Tensor sample_batch(const ImageBatch& batch, DeviceMark& mark, const AfterBatchStep& after_step,
                    const PipelineHooks& hooks, PipelineTimes& times);

}  // namespace rbee::engine
