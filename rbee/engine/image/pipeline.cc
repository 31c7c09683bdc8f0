#include "rbee/engine/image/pipeline.h"

#include <algorithm>
#include <utility>

#include "rbee/engine/image/batch.h"
#include "rbee/engine/image/latents.h"
#include "rbee/engine/image/stopwatch.h"
#include "rbee/engine/image/upscale.h"

namespace rbee::engine {
namespace {

// Exists while a picture is decoded.
class Decoding {
 public:
  // pixels: of the largest picture while it exists
  Decoding(const PipelineHooks& hooks, int64_t pixels) : hooks_(hooks) {
    if (hooks_.decoding) hooks_.decoding(pixels);
  }
  ~Decoding() {
    if (hooks_.decoding) hooks_.decoding(0);
  }
  Decoding(const Decoding&) = delete;
  Decoding& operator=(const Decoding&) = delete;

 private:
  const PipelineHooks& hooks_;
};

// The steps, of all, that a preview follows.
struct Previews {
  Previews(const ImageRequest& request, int32_t steps) : every(request.preview_interval) {
    if (request.preview_count == 0) return;
    every = std::max(1, steps / (request.preview_count + 1));
    left = std::min(request.preview_count, steps - 1);
  }
  bool any() const { return every > 0 && left > 0; }
  bool due(int32_t step) {
    if (!any() || step % every != 0) return false;
    --left;
    return true;
  }

  int32_t every;  // 0: none
  int32_t left = INT32_MAX;
};

}  // namespace

int32_t ImagePipeline::total_steps(const ImageRequest& request,
                                   const ImageSettings& settings) const {
  const int32_t of_batch = batch_steps(source_, request, settings);
  const int32_t batches = (request.count + settings.batch - 1) / settings.batch;
  return batches * of_batch;
}

bool ImagePipeline::run(const ImageRequest& request, const ImageSettings& settings,
                        const PipelineHooks& hooks, PipelineTimes& times) {
  try {
    return run_batches(request, settings, hooks, times);
  } catch (const PipelineEnded&) {
    return false;
  } catch (const Error& error) {
    // The next request gets all of the memory.
    if (error.code() == Code::out_of_memory) forget_prompts();
    throw;
  }
}

bool ImagePipeline::run_batches(const ImageRequest& request, const ImageSettings& settings,
                                const PipelineHooks& hooks, PipelineTimes& times) {
  const RequestPrompts prompts = read_prompts(request, settings, is_guided(source_));
  PromptStates states;
  {
    const Stopwatch watch(times, &PipelineTimes::text_ms);
    states = prompts_.get(prompts.texts, request, [&] {
      return encode_prompts(source_, request, prompts.texts, [&] { end_if_asked(hooks); });
    });
    source_.device->synchronize(source_.device->default_stream());
  }
  // Before the steps: if the VAE were used between two of them, an offloaded denoiser would have to
  // leave the device, and a capture of it would read freed weights.
  Previews previews(request, total_steps(request, settings));
  if (previews.any() && !source_.preview_vae && !preview_map_) {
    preview_map_ = std::make_unique<PreviewMap>(*source_.model.vae, *source_.device);
  }
  int32_t steps_done = 0;
  for (int32_t first = 0; first < request.count; first += settings.batch) {
    // A request to hurry that came while the last pictures were decoded is about those pictures.
    if (first > 0 && hooks.rest) hooks.rest();
    if (first > 0) end_if_asked(hooks);
    if (first > 0 && hooks.hurry && hooks.hurry() == Hurry::request) return true;
    const int32_t count = std::min(settings.batch, request.count - first);
    Hurry hurry = Hurry::none;
    const auto after_step = [&](const Tensor& denoised, int32_t steps) {
      steps_done += steps;
      if (!hooks.step(steps_done)) return BatchNext::drop;
      if (hooks.hurry) hurry = hooks.hurry();
      if (hurry != Hurry::none) return BatchNext::take;
      if (steps == 0 || !previews.due(steps_done)) return BatchNext::step;
      const bool goes_on = show_preview(denoised, steps_done, first, hooks);
      return goes_on ? BatchNext::step : BatchNext::drop;
    };
    Tensor latents;
    {
      const Stopwatch watch(times, &PipelineTimes::sample_ms);
      const ImageBatch batch{.source = source_,
                             .request = request,
                             .settings = settings,
                             .prompts = prompts,
                             .states = states,
                             .first = first,
                             .count = count};
      latents = sample_batch(batch, mark_, after_step, hooks, times);
    }
    if (!latents.defined()) return false;
    if (hooks.latents) hooks.latents(latents, first);
    if (!decode(latents, request, settings, first, hooks, times)) return false;
    if (hurry == Hurry::request) return true;
  }
  return true;
}

bool ImagePipeline::show_preview(const Tensor& denoised, int32_t steps_done, int32_t index,
                                 const PipelineHooks& hooks) {
  const Tensor first = contiguous(denoised.slice(Axis{0}, 0, 1));
  const std::vector<float> values = first.to_host<float>();
  check_finite(values);
  if (source_.preview_vae) {
    return hooks.preview(decode_latent(*source_.preview_vae, first), steps_done, index);
  }
  const auto width = static_cast<int32_t>(denoised.dim(2));
  const auto height = static_cast<int32_t>(denoised.dim(1));
  return hooks.preview((*preview_map_)(values, width, height), steps_done, index);
}

bool ImagePipeline::decode(const Tensor& latents, const ImageRequest& request,
                           const ImageSettings& settings, int32_t first, const PipelineHooks& hooks,
                           PipelineTimes& times) {
  const auto between = [&] { end_if_asked(hooks); };
  for (int64_t i = 0; i < latents.dim(0); ++i) {
    io::Pixels image;
    {
      const Stopwatch watch(times, &PipelineTimes::decode_ms);
      {
        const int64_t scale = source_.model.vae->info().scale;
        const Decoding decoding(hooks, latents.dim(1) * latents.dim(2) * scale * scale);
        const Tensor latent = contiguous(latents.slice(Axis{0}, i, 1));
        check_finite(latent.to_host<float>());
        image = decode_latent(*source_.model.vae, latent,
                              {.tiled = is_tiled(source_, request),
                               .between = between,
                               .circular = settings.circular});
      }
      if (settings.mask) {
        const auto paste = [&, &back = settings.repainted] {
          image = pasted(image, back.whole, back.region, back.share);
        };
        between();
        const bool last = first + i + 1 == request.count && settings.final_network == nullptr;
        hooks.beside ? hooks.beside(paste, last) : paste();
      }
      if (settings.final_network != nullptr) {
        const int64_t scale = settings.final_network->scale();
        const Decoding decoding(hooks, image.width * scale * image.height * scale);
        image = upscaled(*settings.final_network, image, *source_.device, upscaling(hooks));
      }
    }
    if (!hooks.image(std::move(image), first + static_cast<int32_t>(i))) return false;
  }
  return true;
}

}  // namespace rbee::engine
