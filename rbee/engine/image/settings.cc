#include "rbee/engine/image/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

#include "rbee/engine/api/image_loras.h"
#include "rbee/engine/api/image_parameters.h"
#include "rbee/engine/image/prompts.h"
#include "rbee/engine/image/second_pass.h"
#include "rbee/engine/image/upscale.h"

namespace rbee::engine {
namespace {

constexpr int32_t kMinSide = 64;
constexpr float kAlmostWhole = 0.999f;  // A1111's bound of a strength

// The double of the same decimal digits: other programs count steps with it, and 100 * 0.29 is
double as_written(float value) {
  const std::string digits = cat(value);
  double out = value;
  std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return out;
}

// Below 2^53, so that a JavaScript client can send it back.
uint64_t fresh_seed() {
  std::random_device device;
  return ((uint64_t{device()} << 32) | device()) & ((uint64_t{1} << 53) - 1);
}

void check_model_side(const ImageSource& source, const char* field, int32_t side) {
  check(side >= kMinSide && side <= source.info.max_side, field, side, " is outside of ", kMinSide,
        " to ", source.info.max_side);
  const int32_t below = side / source.side_step * source.side_step;
  check(side == below, field, side, " is not a multiple of ", source.side_step,
        ", as this model needs; the nearest are ", below, " and ", below + source.side_step);
}

void set_names(const ImageSource& source, const ImageRequest& request, ImageSettings& out) {
  out.sampler = source.scheduler.sampler;
  if (!request.sampler.empty()) {
    const auto choice = diffusion::parse_sampler(request.sampler);
    out.sampler = choice.sampler;
    if (choice.schedule) out.schedule = *choice.schedule;
  }
  if (!request.schedule.empty()) out.schedule = diffusion::parse_schedule(request.schedule);
  // A client that asks for A1111's numbers means A1111's "Automatic".
  if (request.tiling != Tiling::none && !source.model.denoiser->info().circular) {
    fail(Code::unsupported, "tiling",
         "pictures without a seam need a UNet (Stable Diffusion 1, 2, XL); leave it off");
  }
  const bool flow = source.scheduler.prediction == diffusion::Prediction::flow;
  const bool a1111 = request.noise_source == NoiseSource::philox && !flow;
  if (a1111 && out.schedule == diffusion::Schedule::automatic) {
    out.schedule = diffusion::customary_schedule(out.sampler);
  }
}

// Fills in the sides that a request leaves open, from the picture that it starts from: its own
// sides; for a photograph larger than what models draw, sides that keep its ratio to the other
// side, or have the model's size as the shorter one.
void set_sides(const ImageSource& source, const io::Pixels& init, ImageSettings& out) {
  const int32_t most = source.info.max_side, step = source.side_step;
  const int32_t shorter = std::min(init.width, init.height);
  const int32_t longer = std::max(init.width, init.height);
  double scale = 1;
  if (longer > most) {
    const int32_t own = std::max(source.info.default_width, source.info.default_height);
    scale = std::min({1.0, double{1} * own / shorter, double{1} * most / longer});
    if (out.width > 0) scale = double{1} * out.width / init.width;
    if (out.height > 0) scale = double{1} * out.height / init.height;
  }
  const auto side = [&](int32_t pixels) {
    const double steps = pixels * scale / step;
    const auto whole = static_cast<int32_t>(longer > most ? std::lround(steps) : std::floor(steps));
    return std::clamp(whole * step, kMinSide, most);
  };
  if (out.width == 0) out.width = side(init.width);
  if (out.height == 0) out.height = side(init.height);
}

io::Pixels picture_of(const ImageRequest& request) {
  io::Pixels out = io::decode_image(request.init_image, "init_image");
  return request.init_on_white ? on_white(std::move(out)) : out;
}

MaskReading reading_of(const ImageRequest& request) {
  return {.opaque = request.mask_opaque, .invert = request.mask_invert};
}

// A picture that is repainted as a whole, and its mask.
void set_whole(const ImageSource& source, const ImageRequest& request, ImageSettings& out) {
  io::Pixels init = picture_of(request);
  set_sides(source, init, out);
  check_model_side(source, "width", out.width);
  check_model_side(source, "height", out.height);
  out.init = fitted(init, out.width, out.height, request.fit);
  if (request.mask_image.empty()) return;
  init = {};
  const io::Pixels sent = io::decode_image(request.mask_image, "mask_image");
  Repainted& back = out.repainted;
  back.whole = *out.init;
  back.region = {0, 0, out.width, out.height};
  out.mask = mask_of(fitted(sent, out.width, out.height, request.fit), reading_of(request));
  const Mask soft = blurred(*out.mask, request.mask_blur);
  back.share = request.mask_blur > 0 ? widened(soft) : soft;
}

// The mask at the size of the picture. As sent it has four bytes a pixel, so it is read
// before the picture.
Mask mask_of_picture(const ImageRequest& request) {
  const io::ImageHeader size = io::read_image_header(request.init_image, "init_image");
  io::Pixels sent = io::decode_image(request.mask_image, "mask_image");
  if (sent.width != size.width || sent.height != size.height) {
    sent = io::resized(sent, size.width, size.height);
  }
  return mask_of(sent, reading_of(request));
}

// The part around the mask as it is painted, and how it goes back. The picture, which may have
// sixteen times a pass's pixels, is not copied otherwise.
void set_part(const ImageRequest& request, ImageSettings& out) {
  Mask whole = mask_of_picture(request);
  Repainted& back = out.repainted;
  {
    const Mask soft = blurred(whole, request.mask_blur);
    back.region = region_around(soft, request.mask_padding, out.width, out.height);
    back.share = cropped(soft, back.region);
  }
  whole = cropped(whole, back.region);
  back.whole = without_opacity(picture_of(request));
  // If the picture is too short for the ratio, its edges are repeated, so that nothing is squeezed.
  out.init = fitted(cropped(back.whole, back.region), out.width, out.height, Fit::fill);
  out.mask = binary(fitted(whole, out.width, out.height, Fit::fill));
}

void set_pictures(const ImageSource& source, const ImageRequest& request, ImageSettings& out) {
  const bool starts = !request.init_image.empty();
  if (starts && !request.mask_only) {
    set_whole(source, request, out);
  } else {
    if (out.width == 0) out.width = source.info.default_width;
    if (out.height == 0) out.height = source.info.default_height;
    check_model_side(source, "width", out.width);
    check_model_side(source, "height", out.height);
    if (starts && request.mask_image.empty()) {
      out.init = resized(picture_of(request), out.width, out.height);
    } else if (starts) {
      set_part(request, out);
    }
  }
  if (out.mask && request.mask_fill == MaskFill::surroundings) {
    out.init = filled_around(*out.init, *out.mask);
  }
}

void set_controls(const ImageSource& source, const ImageRequest& request, ImageSettings& out) {
  for (const ControlUse& control : request.controls) {
    if (!reads_control(source)) find_control(source, control.name);
  }
  // One after another: as sent they may have sixteen times a pass's pixels.
  for (const ControlUse& control : request.controls) {
    const io::Pixels sent = without_opacity(io::decode_image(control.image, "control.image"));
    out.controls[0].push_back(fitted(sent, out.width, out.height, control.fit));
    if (!out.has_hires) continue;
    out.controls[1].push_back(fitted(sent, out.final_width, out.final_height, control.fit));
  }
}

void set_hires(const ImageSource& source, const ImageRequest& request, ImageSettings& out) {
  out.final_width = out.mask ? out.repainted.whole.width : out.width;
  out.final_height = out.mask ? out.repainted.whole.height : out.height;
  if (!request.hires) return;
  check(request.mask_image.empty(), "hires", "it does not go together with mask_image");
  out.has_hires = true;
  out.upscaler = parse_upscaler(request.hires->upscaler, source.info.upscalers);
  if (out.upscaler == UpscalerKind::network) {
    out.hires_network = find_upscaler(source, request.hires->upscaler);
    check_enlarged("hires.upscaler", *out.hires_network, out.width, out.height);
  }
  const Size size = second_size(*request.hires, {out.width, out.height}, source.side_step);
  out.final_width = size.width;
  out.final_height = size.height;
  check_model_side(source, "hires.width", out.final_width);
  check_model_side(source, "hires.height", out.final_height);
}

// Of the pictures to make.
void set_upscaler(const ImageSource& source, const ImageRequest& request, ImageSettings& out) {
  if (request.upscaler.empty()) return;
  out.final_network = find_upscaler(source, request.upscaler);
  if (source.info.upscalers.empty()) {
    fail(Code::invalid_argument, "upscaler", "there is no network \"", request.upscaler,
         "\"; start with --upscale-model FILE");
  }
  if (out.final_network == nullptr) {
    std::string known;
    for (const UpscalerInfo& each : source.info.upscalers) {
      known += cat(known.empty() ? "" : ", ", each.name);
    }
    fail(Code::invalid_argument, "upscaler", "\"", request.upscaler, "\" is none of ", known);
  }
  check_enlarged("upscaler", *out.final_network, out.final_width, out.final_height);
}

// The engine holds files of all pictures of a request until it ends.
void check_pixels(const ImageRequest& request, const ImageSettings& settings) {
  constexpr int64_t kMost = int64_t{64} << 20;
  const int64_t scale = settings.final_network != nullptr ? settings.final_network->scale() : 1;
  const int64_t pixels = settings.final_width * scale * settings.final_height * scale;
  check(pixels * request.count <= kMost, "count", request.count, " pictures of ", pixels,
        " pixels are more than the ", kMost, " of a request");
}

// A sampler that the request names has its own settings.
void check_own_sampler(const ImageSource& source, const ImageRequest& request) {
  const std::vector<std::string>& ignored = source.scheduler.ignored;
  if (!request.sampler.empty() || ignored.empty()) return;
  fail(Code::unsupported, "sampler", "the model's own is not computed, since its ",
       "scheduler_config.json says ", ignored.front(), "; name a sampler, such as \"",
       diffusion::name(source.scheduler.sampler), "\"");
}

void check_clip_skip(const ImageSource& source, int32_t clip_skip) {
  for (const models::TextPart& part : source.model.text) {
    if (part.tokenizer.kind == models::TokenizerFiles::Kind::t5) continue;
    check(clip_skip <= part.encoder->layers(), "clip_skip", clip_skip, " is more than the ",
          part.encoder->layers(), " layers of the model's CLIP");
  }
}

void check_abilities(const ImageSource& source, const ImageRequest& request) {
  check_clip_skip(source, request.clip_skip);
  check_own_sampler(source, request);
  if (needs_mask(source) && request.mask_image.empty()) {
    fail(Code::unsupported, "mask_image",
         "this model repaints pictures: it needs init_image and "
         "mask_image");
  }
  if (reads_control(source) && request.controls.size() != 1) {
    fail(Code::unsupported, "control",
         "this model follows a picture, such as edges or depths: it needs one control");
  }
  constexpr size_t kMaxParts = 16;
  const size_t parts = prompt_parts(request);
  check(parts <= kMaxParts, "prompt", parts, " parts around AND are more than ", kMaxParts);
  if (parts > 1 && !is_guided(source)) {
    fail(Code::unsupported, "prompt",
         "parts around AND need guidance by a negative prompt, which this model has not; write the "
         "word in lower case, or choose prompt_rule none");
  }
  if (request.tiling != Tiling::none && !source.model.denoiser->info().circular) {
    fail(Code::unsupported, "tiling",
         "pictures without a seam need a UNet (Stable Diffusion 1, 2, XL); leave it off");
  }
  const bool flow = source.scheduler.prediction == diffusion::Prediction::flow;
  if (flow && request.added_noise.churn > 0) {
    fail(Code::unsupported, "s_churn", "models of flow matching have no such noise; leave it at 0");
  }
  const std::vector<LoraUse> loras = prompt_loras(request).loras;
  if (!loras.empty() && !source.change_loras) {
    fail(Code::unsupported, "loras", "this model takes none");
  }
  for (const LoraUse& lora : loras) source.loras.find(lora.path);
}

// As A1111, which reads a value with one of these only between quotes to its end.
std::string quoted(const std::string& value) {
  if (value.find_first_of(",:\n") == std::string::npos) return value;
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    c == '\n' ? out += "\\n" : out += c;
  }
  return out + '"';
}

void append_field(std::string& out, const char* key, const std::string& value) {
  out += cat(", ", key, ": ", quoted(value));
}

void append_mask(std::string& out, const ImageRequest& request) {
  constexpr const char* kFills[] = {"original", "latent noise", "latent nothing", "fill"};
  if (request.mask_blur > 0) append_field(out, "Mask blur", cat(request.mask_blur));
  if (request.mask_fill != MaskFill::original) {
    append_field(out, "Masked content", kFills[static_cast<size_t>(request.mask_fill)]);
  }
  if (!request.mask_only) return;
  append_field(out, "Inpaint area", "Only masked");
  append_field(out, "Masked area padding", cat(request.mask_padding));
}

void append_emphasis(std::string& out, const ImageRequest& request) {
  if (request.prompt_rule == PromptRule::none) append_field(out, "Emphasis", "None");
  if (request.prompt_rule == PromptRule::comfy) append_field(out, "Emphasis", "Comfy");
  if (request.prompt_rule != PromptRule::a1111) return;
  if (request.emphasis == Emphasis::no_norm) append_field(out, "Emphasis", "No norm");
  if (request.emphasis == Emphasis::ignore) append_field(out, "Emphasis", "Ignore");
}

void append_noise(std::string& out, const ImageRequest& request) {
  if (request.eta) append_field(out, "Eta", cat(*request.eta));
  const AddedNoise& added = request.added_noise;
  if (added.churn > 0) append_field(out, "Sigma churn", cat(added.churn));
  if (added.tmin > 0) append_field(out, "Sigma tmin", cat(added.tmin));
  if (added.tmax > 0) append_field(out, "Sigma tmax", cat(added.tmax));
  if (added.noise != 1) append_field(out, "Sigma noise", cat(added.noise));
  if (request.seed_delta != 0) append_field(out, "ENSD", cat(request.seed_delta));
  if (request.seed_width == 0) return;
  append_field(out, "Seed resize from", cat(request.seed_width, "x", request.seed_height));
}

void append_hires(std::string& out, const ImageRequest& request, const ImageSettings& settings) {
  const char* strength = settings.init ? kHiresStrength : "Denoising strength";
  append_field(out, strength, cat(request.hires->strength));
  if (request.hires->width > 0 || request.hires->height > 0) {
    append_field(out, "Hires resize", cat(settings.final_width, "x", settings.final_height));
  } else {
    append_field(out, "Hires upscale", cat(request.hires->scale));
  }
  if (request.hires->steps > 0) append_field(out, "Hires steps", cat(request.hires->steps));
  const bool network = settings.upscaler == UpscalerKind::network;
  append_field(out, "Hires upscaler",
               network ? request.hires->upscaler : std::string(name(settings.upscaler)));
}

}  // namespace

uint64_t seed_of(const ImageSettings& settings, int32_t index) {
  return settings.seed + (settings.variation_strength > 0 ? 0 : static_cast<uint64_t>(index));
}

int64_t pixels_sent(const ImageRequest& request) {
  int64_t out = 0;
  const auto add = [&](std::string_view file) {
    try {
      const io::ImageHeader header = io::read_image_header(file, "image");
      out += int64_t{header.width} * header.height;
    } catch (const Error&) {  // resolve() says what is wrong
    }
  };
  add(request.init_image);
  add(request.mask_image);
  for (const ControlUse& control : request.controls) add(control.image);
  return out;
}

int32_t hires_steps(const ImageRequest& request, const ImageSettings& settings) {
  return request.hires->steps > 0 ? request.hires->steps : settings.steps;
}

ImageSettings resolve(const ImageSource& source, const ImageRequest& request) {
  validate(request);
  check_abilities(source, request);
  ImageSettings out;
  out.width = request.width;
  out.height = request.height;
  set_names(source, request, out);
  set_pictures(source, request, out);
  set_hires(source, request, out);
  set_upscaler(source, request, out);
  check_pixels(request, out);
  set_controls(source, request, out);
  out.steps = request.steps != 0 ? request.steps : source.info.default_steps;
  out.guidance = request.guidance_scale.value_or(source.info.default_guidance);
  out.seed = request.seed ? *request.seed : fresh_seed();
  out.circular = {.x = request.tiling == Tiling::x || request.tiling == Tiling::both,
                  .y = request.tiling == Tiling::y || request.tiling == Tiling::both};
  out.variation_strength = request.variation.strength;
  out.variation_seed = request.variation.seed ? *request.variation.seed : fresh_seed();
  const int32_t customary = source.device->host_accessible() ? 1 : 4;
  out.batch = std::min(request.batch != 0 ? request.batch : customary, request.count);
  // Its steps would depend on all pictures of a batch.
  if (out.sampler == diffusion::Sampler::dpm_adaptive) out.batch = 1;
  read_prompts(request, out, is_guided(source));  // refuses too many texts
  return out;
}

Start start_of(StrengthRule rule, int32_t steps, float strength, bool flow) {
  const double bounded = as_written(std::min(strength, kAlmostWhole));
  switch (rule) {
    case StrengthRule::part: {
      const double run = steps * as_written(strength);
      const auto first = static_cast<int32_t>(flow ? steps - run : steps - std::floor(run));
      return {steps, std::clamp(first, 0, steps - 1)};
    }
    case StrengthRule::a1111:
      return {steps, steps - static_cast<int32_t>(steps * bounded) - 1};
    case StrengthRule::all: {
      constexpr int32_t kMost = 1000;
      const double wanted = steps / std::max(bounded, 1.0 / kMost);
      const auto levels = static_cast<int32_t>(std::min(wanted, double{kMost}));
      return {levels, std::max(levels - steps, 0)};
    }
  }
  return {steps, 0};
}

std::string parameters_text(const ImageRequest& request, const ImageSettings& settings,
                            const ImageModelInfo& model, int32_t index) {
  std::string out = request.prompt;
  // As tags, so that reading a prompt of this text finds them again.
  for (const LoraUse& lora : request.loras) {
    if (request.prompt_rule != PromptRule::none && fits_tag(lora.path)) {
      out += cat(" <lora:", lora.path, ":");
      if (lora.text_strength) out += cat(*lora.text_strength, ":");
      out += cat(lora.strength, ">");
    }
  }
  if (!request.negative_prompt.empty()) {
    out += cat("\nNegative prompt: ", request.negative_prompt);
  }
  out += cat("\nSteps: ", settings.steps);
  append_field(out, "Sampler", std::string(diffusion::name(settings.sampler)));
  append_field(out, "Schedule type", std::string(diffusion::name(settings.schedule)));
  append_field(out, "CFG scale", cat(settings.guidance));
  append_field(out, "Seed", cat(seed_of(settings, index)));
  append_field(out, "Size", cat(settings.width, "x", settings.height));
  append_field(out, "Model", model.id);
  if (settings.variation_strength > 0) {
    append_field(out, "Variation seed",
                 cat(settings.variation_seed + static_cast<uint64_t>(index)));
    append_field(out, "Variation seed strength", cat(settings.variation_strength));
  }
  append_field(out, "RNG", request.noise_source == NoiseSource::philox ? "NV" : "CPU");
  append_emphasis(out, request);
  if (request.clip_skip > 1) append_field(out, "Clip skip", cat(request.clip_skip));
  if (request.guidance_rescale > 0) append_field(out, "CFG Rescale", cat(request.guidance_rescale));
  append_noise(out, request);
  constexpr const char* kTilings[] = {"", "X", "Y", "True"};
  if (request.tiling != Tiling::none) {
    append_field(out, "Tiling", kTilings[static_cast<size_t>(request.tiling)]);
  }
  if (settings.init) append_field(out, "Denoising strength", cat(request.strength));
  if (settings.mask) append_mask(out, request);
  if (settings.has_hires) append_hires(out, request, settings);
  if (settings.final_network != nullptr) {
    append_field(out, "Postprocess upscale by", cat(settings.final_network->scale()));
    append_field(out, "Postprocess upscaler", request.upscaler);
  }
  // A1111 has one rule, and no field for another.
  const bool philox = request.noise_source == NoiseSource::philox;
  constexpr const char* kRules[] = {"Part", "A1111", "All"};
  if ((settings.init || settings.has_hires) &&
      request.strength_rule != (philox ? StrengthRule::a1111 : StrengthRule::part)) {
    append_field(out, "Strength rule", kRules[static_cast<size_t>(request.strength_rule)]);
  }
  append_field(out, "Version", "rbee.cpp");
  return out;
}

}  // namespace rbee::engine
