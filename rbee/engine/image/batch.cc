#include "rbee/engine/image/batch.h"

#include <algorithm>
#include <span>
#include <utility>

#include "rbee/diffusion/run_plan.h"
#include "rbee/engine/image/guide.h"
#include "rbee/engine/image/latents.h"
#include "rbee/engine/image/noise.h"
#include "rbee/engine/image/second_pass.h"
#include "rbee/engine/image/upscale.h"
#include "rbee/ops/concat.h"
#include "rbee/ops/elementwise.h"

namespace rbee::engine {
namespace {

using diffusion::weighted_sum;
using models::ImageFamily;

// One sampling from noise, or from a latent with new noise.
struct Pass {
  int32_t width = 0;  // pixels
  int32_t height = 0;
  int32_t steps = 0;
  Tensor from;  // (batch, h, w, channels), or undefined
  float strength = 1;
  StrengthRule rule = StrengthRule::part;
  std::span<const io::Pixels> controls;  // of the pass's size
  const PassPrompts* prompts = nullptr;
};

// The parts of a picture that a mask leaves unchanged.
struct Inpaint {
  Tensor mask;    // (1, h, w, 1), 1 = repainted
  Tensor latent;  // of the whole picture, (batch, h, w, channels)
  Tensor noise;   // the noise for it
  Tensor extra;   // (batch, h, w, c) for denoisers that read a mask
};

Pass first_pass(const ImageRequest& request, const ImageSettings& settings) {
  return {.width = settings.width,
          .height = settings.height,
          .steps = settings.steps,
          .from = {},
          .strength = request.strength,
          .rule = request.strength_rule,
          .controls = settings.controls[0]};
}

Pass second_pass(const ImageRequest& request, const ImageSettings& settings) {
  const HiresFix& hires = *request.hires;
  return {
      .width = settings.final_width,
      .height = settings.final_height,
      .steps = hires_steps(request, settings),
      .from = {},
      .strength = hires.strength,
      .rule = request.strength_rule == StrengthRule::part ? StrengthRule::part : StrengthRule::all,
      .controls = settings.controls[1]};
}

// A start has at most as many levels as a schedule, and all of these are run. If its own steps are
// more, the schedule refuses them.
Start within(const Start& start, int32_t most) {
  if (start.levels <= most || start.levels - start.first > most) return start;
  return {most, start.first - (start.levels - most)};
}

// The noise levels of a pass; `restarts`: from a latent.
diffusion::Levels levels_of(const ImageSource& source, const ImageSettings& settings,
                            const diffusion::NoiseModel& noise, const Pass& pass, bool restarts) {
  Start start{pass.steps, 0};
  const bool flow = source.scheduler.prediction == diffusion::Prediction::flow;
  const ImageFamily family = source.model.family;
  diffusion::LevelOptions options{
      .sampler = settings.sampler,
      .schedule = settings.schedule,
      .even_flow = family == ImageFamily::flux || family == ImageFamily::z_image,
      .large_model = family == ImageFamily::sdxl || family == ImageFamily::sdxl_refiner};
  if (restarts) {
    const int32_t most = diffusion::most_steps(noise, source.scheduler, options);
    start = within(start_of(pass.rule, pass.steps, pass.strength, flow), most);
  }
  options.steps = start.levels;
  auto all = diffusion::make_levels(noise, source.scheduler, options);
  if (!restarts) return all;
  return diffusion::levels_from(all, std::min(start.first, all.steps() - 1));
}

diffusion::NoiseModel noise_of(const ImageSource& source, const Pass& pass) {
  const int64_t unit = source.model.vae->info().scale * source.model.denoiser->info().patch;
  return diffusion::NoiseModel(source.scheduler, pass.width / unit * (pass.height / unit));
}

// Of each image.
std::vector<NoiseSeed> seeds_of(const ImageBatch& batch) {
  const ImageRequest& request = batch.request;
  const ImageSettings& settings = batch.settings;
  const int64_t scale = batch.source.model.vae->info().scale;
  std::vector<NoiseSeed> out;
  for (int32_t i = batch.first; i < batch.first + batch.count; ++i) {
    out.push_back({.seed = seed_of(settings, i),
                   .variation_seed = settings.variation_seed + static_cast<uint64_t>(i),
                   .variation_strength = settings.variation_strength,
                   .delta = static_cast<uint64_t>(request.seed_delta),
                   .height = request.seed_height / scale,
                   .width = request.seed_width / scale});
  }
  return out;
}

Tensor rows(const std::vector<Tensor>& parts) {
  return parts.size() == 1 ? parts.front() : concat(parts, Axis{0});
}

class Batch {
 public:
  Batch(const ImageBatch& batch, DeviceMark& mark)
      : source_(batch.source),
        request_(batch.request),
        settings_(batch.settings),
        prompts_(batch.prompts),
        states_(batch.states),
        mark_(mark),
        seeds_(seeds_of(batch)),
        count_(batch.count),
        noise_(request_.noise_source, seeds_) {}

  Tensor sample(const AfterBatchStep& after_step, const PipelineHooks& hooks,
                PipelineTimes& times) {
    Pass pass = first_pass(request_, settings_);
    pass.prompts = &prompts_.first;
    Inpaint inpaint;
    // At full strength a denoiser that reads the masked picture needs no more of it. diffusers
    // still draws for its latent with FLUX Fill, and so do we.
    const bool repaints_all = settings_.mask && mask_channels() == 1 && pass.strength >= 1;
    if (settings_.init && !repaints_all) {
      const auto found = encode(image_tensor(*settings_.init, device()));
      pass.from = latents_of(found);
    }
    if (settings_.mask) inpaint = prepare_mask(pass);
    Tensor latent = run(pass, inpaint, after_step, times);
    if (next_ != BatchNext::step || !settings_.has_hires) return latent;
    pass = second_pass(request_, settings_);
    pass.prompts = &prompts_.second;
    if (request_.noise_source == NoiseSource::philox) {
      noise_ = BatchNoise(request_.noise_source, seeds_);
    }
    pass.from = larger(latent, pass, hooks);
    return run(pass, {}, after_step, times);
  }

 private:
  Device& device() const { return *source_.device; }

  Shape shape_of(const Pass& pass) const {
    const int64_t scale = source_.model.vae->info().scale;
    return {count_, pass.height / scale, pass.width / scale,
            source_.model.denoiser->info().out_channels};
  }

  models::LatentDistribution encode(const Tensor& picture) const {
    return encode_in_tiles(*source_.model.vae, picture, vae_options());
  }

  TileOptions vae_options() const {
    return {.tiled = is_tiled(source_, request_), .between = {}, .circular = settings_.circular};
  }

  // The start of a second pass.
  Tensor larger(const Tensor& latent, const Pass& pass, const PipelineHooks& hooks) {
    const bool picture = settings_.upscaler >= UpscalerKind::lanczos;
    return picture ? larger_pictures(latent, pass, hooks) : larger_latents(latent, pass);
  }

  Tensor larger_latents(const Tensor& latent, const Pass& pass) const {
    const Shape size = shape_of(pass);
    const auto side = [](int64_t value) { return static_cast<int32_t>(value); };
    const Cover covering =
        cover({side(latent.dim(2)), side(latent.dim(1))}, {side(size[2]), side(size[1])});
    const auto [columns, rows] = covering.whole;
    const auto how = static_cast<LatentFilter>(settings_.upscaler);
    const auto values = enlarged(latent.to_host<float>(), latent.shape(), rows, columns, how);
    const Tensor whole = from_host<float>(values, {count_, rows, columns, size[3]}, device());
    const Region& part = covering.part;
    return contiguous(
        whole.slice(Axis{1}, part.top, part.height).slice(Axis{2}, part.left, part.width));
  }

  Tensor larger_pictures(const Tensor& latent, const Pass& pass, const PipelineHooks& hooks) {
    const auto how = settings_.upscaler == UpscalerKind::nearest ? io::Resampler::nearest
                                                                 : io::Resampler::lanczos;
    std::vector<Tensor> parts;
    for (int64_t i = 0; i < count_; ++i) {
      io::Pixels small =
          decode_latent(*source_.model.vae, contiguous(latent.slice(Axis{0}, i, 1)), vae_options());
      if (settings_.upscaler == UpscalerKind::network) {
        small = upscaled(*settings_.hires_network, small, device(), upscaling(hooks));
      }
      const Tensor large =
          image_tensor(covered(std::move(small), {pass.width, pass.height}, how), device());
      parts.push_back(latent_of_one(encode(large), i));
    }
    return rows(parts);
  }

  // A1111 takes the mean; diffusers draws from each image's generator.
  Tensor latents_of(const models::LatentDistribution& found) {
    std::vector<Tensor> parts;
    parts.reserve(static_cast<size_t>(count_));
    for (int64_t i = 0; i < count_; ++i) parts.push_back(latent_of_one(found, i));
    return rows(parts);
  }

  Tensor latent_of_one(const models::LatentDistribution& found, int64_t image) {
    const bool draws = request_.noise_source == NoiseSource::torch;
    return latent_of(source_.model.vae->info(), found, draws ? &noise_.of(image) : nullptr);
  }

  Inpaint prepare_mask(Pass& pass) {
    Inpaint out;
    const auto scale = static_cast<int32_t>(source_.model.vae->info().scale);
    out.mask = latent_mask(*settings_.mask, scale, device());
    out.latent = pass.from;
    if (pass.from.defined()) pass.from = filled_in(pass, out.mask);
    out.noise = noise_.draw_start(shape_of(pass), device());
    if (source_.info.inpainting) {
      const auto found = encode(masked_tensor(*settings_.init, *settings_.mask, device()));
      out.extra = mask_and_picture(latents_of(found), out.mask);
    }
    return out;
  }

  // What an inpainting UNet reads without a mask: one that is all ones, beside the latent of a
  // picture that is gray all over, as AUTOMATIC1111 draws with such models
  // (modules/processing.py, txt2img_image_conditioning).
  Tensor whole_mask(const Pass& pass) const {
    const Shape shape = shape_of(pass);
    const auto found = encode(zeros({1, pass.height, pass.width, 3}, DType::f32, device()));
    const Tensor gray = latent_of(source_.model.vae->info(), found, nullptr);
    const Tensor ones = affine(zeros({1, shape[1], shape[2], 1}, DType::f32, device()), 1, 1);
    return rows(std::vector<Tensor>(static_cast<size_t>(count_), concat({ones, gray}, Axis{3})));
  }

  int64_t mask_channels() const { return source_.model.denoiser->info().mask_channels(); }

  // Stable Diffusion reads the latents' mask first, FLUX Fill the mask's pixels last.
  Tensor mask_and_picture(const Tensor& picture, const Tensor& mask) const {
    const auto of_all = [&](const Tensor& one) {
      return rows(std::vector<Tensor>(static_cast<size_t>(count_), one));
    };
    if (mask_channels() == 1) return concat({of_all(mask), picture}, Axis{3});
    const auto scale = static_cast<int32_t>(source_.model.vae->info().scale);
    return concat({picture, of_all(mask_pixels(*settings_.mask, scale, device()))}, Axis{3});
  }

  // The picture's latent, with mask_fill's content under the mask.
  Tensor filled_in(const Pass& pass, const Tensor& mask) {
    const bool painted_in =
        request_.mask_fill == MaskFill::original || request_.mask_fill == MaskFill::surroundings;
    if (painted_in) return pass.from;
    Tensor kept = pass.from * affine(mask, -1, 1);
    if (request_.mask_fill == MaskFill::nothing) return kept;
    return kept + noise_.draw(shape_of(pass), device()) * mask;
  }

  // The denoiser's inputs besides the text.
  PromptStates with_sizes(const Pass& pass) const {
    PromptStates out = states_;
    const models::DenoiserInfo& info = source_.model.denoiser->info();
    const auto width = static_cast<float>(pass.width);
    const auto height = static_cast<float>(pass.height);
    for (std::vector<models::TextStates>* half : {&out.positive, &out.negative}) {
      std::vector<float> sizes = {height, width, 0, 0};
      if (info.size_ids == 6) sizes.insert(sizes.end(), {height, width});
      if (info.size_ids == 5) sizes.push_back(half == &out.positive ? 6.0f : 2.5f);
      for (models::TextStates& states : *half) {
        if (info.size_ids > 0) {
          states.size_ids = from_host<float>(sizes, {1, info.size_ids}, device());
        }
        if (info.guidance) states.guidance = from_host<float>(distilled_guidance(), {1}, device());
      }
    }
    return out;
  }

  std::vector<float> distilled_guidance() const {
    const bool flux = source_.model.family == ImageFamily::flux;
    return {flux ? settings_.guidance : settings_.guidance - 1};
  }

  std::vector<ControlHint> hints_of(const Pass& pass) const {
    std::vector<ControlHint> out;
    if (reads_control(source_)) return out;
    for (size_t i = 0; i < pass.controls.size(); ++i) {
      const ControlUse& use = request_.controls[i];
      out.push_back({.net = &find_control(source_, use.name),
                     .picture = affine(image_tensor(pass.controls[i], device()), 0.5, 0.5),
                     .scale = use.scale,
                     .start = use.start,
                     .finish = use.finish});
    }
    return out;
  }

  Guide guide_of(const Pass& pass, const diffusion::NoiseModel& noise,
                 const Inpaint& inpaint) const {
    return Guide(*source_.model.denoiser, noise, with_sizes(pass), *pass.prompts, count_,
                 {.scale = is_guided(source_) ? settings_.guidance : 1,
                  .rescale = request_.guidance_rescale,
                  .unguided = diffusion::needs_unguided(settings_.sampler),
                  .by_steps = settings_.sampler == diffusion::Sampler::dpm_adaptive,
                  .extra = inpaint.extra,
                  .controls = hints_of(pass),
                  .circular = settings_.circular});
  }

  Tensor start_of_pass(const Pass& pass, const diffusion::NoiseModel& noise,
                       const diffusion::Levels& levels, const Inpaint& inpaint) {
    const Tensor drawn =
        inpaint.noise.defined() ? inpaint.noise : noise_.draw_start(shape_of(pass), device());
    if (!pass.from.defined()) return affine(drawn, levels.initial_scale, 0);
    const double sigma = levels.sigmas.front();
    return weighted_sum({{&pass.from, noise.alpha(sigma)}, {&drawn, sigma}});
  }

  diffusion::SamplerOptions sampler_options() const {
    diffusion::SamplerOptions out{.sampler = settings_.sampler};
    if (request_.eta) out.eta = *request_.eta;
    const AddedNoise& added = request_.added_noise;
    out.churn.amount = added.churn;
    out.churn.low = added.tmin;
    if (added.tmax > 0) out.churn.high = added.tmax;
    out.noise_scale = added.noise;
    return out;
  }

  // The picture that the denoiser follows.
  Tensor control_latents(const Pass& pass) {
    return latents_of(encode(image_tensor(pass.controls.front(), device())));
  }

  Tensor run(Pass pass, Inpaint inpaint, const AfterBatchStep& after_step, PipelineTimes& times) {
    // A mask at full strength starts from noise alone, as in diffusers.
    if (inpaint.mask.defined() && pass.strength >= 1) pass.from = {};
    const diffusion::NoiseModel noise = noise_of(source_, pass);
    const auto levels = levels_of(source_, settings_, noise, pass, pass.from.defined());
    const diffusion::Plan plan = diffusion::make_plan(noise, levels, sampler_options());
    if (reads_control(source_)) inpaint.extra = control_latents(pass);
    if (source_.info.inpainting && !inpaint.mask.defined()) inpaint.extra = whole_mask(pass);
    Guide guide = guide_of(pass, noise, inpaint);
    StepPlace place{0, plan.count()};
    Tensor taken;
    diffusion::PlanHooks hooks;
    hooks.evaluate = [&](const Tensor& x, double sigma, double time, bool unguided) {
      ++times.evaluations;
      return guide.evaluate(x, sigma, time, unguided, place);
    };
    hooks.draw = [&] { return noise_.draw(shape_of(pass), device()); };
    hooks.after_step = [&](const diffusion::StepEnd& end, Tensor& x, const Tensor& denoised) {
      if (inpaint.mask.defined() && mask_channels() == 0) {
        const double alpha = end.last ? 1 / plan.final_scale : noise.alpha(end.sigma);
        x = kept_outside(x, inpaint, alpha, end.last ? 0 : end.sigma);
      }
      report(denoised, end.done - std::exchange(place.index, end.done), end.last, after_step);
      if (next_ == BatchNext::take) taken = denoised;
      return next_ == BatchNext::step;
    };
    Tensor x = start_of_pass(pass, noise, levels, inpaint);
    x = diffusion::run_plan(plan, std::move(x), hooks);
    return next_ == BatchNext::step ? x : taken;
  }

  // Reports a step after it is done. If the device works by itself, it first queues the next step,
  // so that the device has work while the host handles the report.
  void report(const Tensor& denoised, int32_t steps, bool last, const AfterBatchStep& after_step) {
    const Unreported before = std::exchange(unreported_, {denoised, steps});
    if (before.denoised.defined()) {
      mark_.wait();
      next_ = after_step(before.denoised, before.steps);
    }
    mark_.set();
    if (next_ != BatchNext::step || !(last || device().host_accessible())) return;
    mark_.wait();
    const Unreported now = std::exchange(unreported_, {});
    next_ = after_step(now.denoised, now.steps);
  }

  // Outside the mask: the picture's own latent, with the noise of x.
  static Tensor kept_outside(const Tensor& x, const Inpaint& inpaint, double alpha, double sigma) {
    const Tensor own = weighted_sum({{&inpaint.latent, alpha}, {&inpaint.noise, sigma}});
    return x * inpaint.mask + own * affine(inpaint.mask, -1, 1);
  }

  const ImageSource& source_;
  const ImageRequest& request_;
  const ImageSettings& settings_;
  const RequestPrompts& prompts_;
  const PromptStates& states_;
  DeviceMark& mark_;
  std::vector<NoiseSeed> seeds_;
  int64_t count_;
  BatchNoise noise_;
  BatchNext next_ = BatchNext::step;  // the last step's answer
  // The last step's denoised picture, until it is reported.
  struct Unreported {
    Tensor denoised;
    int32_t steps = 0;
  } unreported_;
};

}  // namespace

void end_if_asked(const PipelineHooks& hooks) {
  if (hooks.going_on && !hooks.going_on()) throw PipelineEnded();
}

UpscaleOptions upscaling(const PipelineHooks& hooks) {
  return {.between = [&] { end_if_asked(hooks); }, .tile_done = hooks.tile};
}

bool is_tiled(const ImageSource& source, const ImageRequest& request) {
  return source.tiled_vae || request.tiled_vae;
}

int32_t batch_steps(const ImageSource& source, const ImageRequest& request,
                    const ImageSettings& settings) {
  const auto steps_of = [&](const Pass& pass, bool restarts) {
    return levels_of(source, settings, noise_of(source, pass), pass, restarts).steps();
  };
  const bool whole_mask = settings.mask && request.strength >= 1;
  int32_t out = steps_of(first_pass(request, settings), settings.init && !whole_mask);
  if (settings.has_hires) out += steps_of(second_pass(request, settings), true);
  return out;
}

Tensor sample_batch(const ImageBatch& batch, DeviceMark& mark, const AfterBatchStep& after_step,
                    const PipelineHooks& hooks, PipelineTimes& times) {
  return Batch(batch, mark).sample(after_step, hooks, times);
}

}  // namespace rbee::engine
