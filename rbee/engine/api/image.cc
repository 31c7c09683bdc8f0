#include "rbee/engine/api/image.h"

#include "rbee/diffusion/names.h"
#include "rbee/engine/api/image_loras.h"

namespace rbee::engine {
namespace {

constexpr int32_t kMinSide = 64;
constexpr int32_t kMaxSide = 2048;
constexpr int32_t kSideStep = 8;
constexpr int32_t kMaxCount = 16;
constexpr size_t kMaxPromptBytes = 64 << 10;
constexpr size_t kMaxImageBytes = size_t{64} << 20;
constexpr size_t kMaxLoras = 32;
constexpr size_t kMaxControls = 8;

// NaN is in no range.
void check_range(const char* field, double value, double low, double high) {
  check(value >= low && value <= high, field, value, " is outside of ", low, " to ", high);
}

void check_side(const char* field, int32_t side) {
  if (side == 0) return;
  check_range(field, side, kMinSide, kMaxSide);
  const int32_t below = side / kSideStep * kSideStep;
  check(side == below, field, side, " is not a multiple of ", kSideStep, "; the nearest are ",
        below, " and ", below + kSideStep);
}

void check_bytes(const char* field, const std::string& bytes, size_t most) {
  check(bytes.size() <= most, field, bytes.size(), " bytes are more than ", most);
}

void check_second_pass(const HiresFix& hires) {
  check_range("hires.scale", hires.scale, 1, 4);
  check_side("hires.width", hires.width);
  check_side("hires.height", hires.height);
  check_range("hires.steps", hires.steps, 0, 150);
  check_range("hires.strength", hires.strength, 0, 1);
}

void check_seed_size(const ImageRequest& request) {
  const int32_t width = request.seed_width, height = request.seed_height;
  if (width == 0 && height == 0) return;
  check_range("seed_resize_from_w", width, kSideStep, kMaxSide);
  check_range("seed_resize_from_h", height, kSideStep, kMaxSide);
}

void check_control(const ControlUse& control) {
  check(!control.image.empty(), "control.image", "it is empty");
  check_bytes("control.image", control.image, kMaxImageBytes);
  check_range("control.scale", control.scale, 0, 2);
  check_range("control.start", control.start, 0, 1);
  check_range("control.finish", control.finish, control.start, 1);
}

void check_loras(const std::vector<LoraUse>& loras) {
  check(loras.size() <= kMaxLoras, "loras", loras.size(), " are more than ", kMaxLoras);
  for (const LoraUse& lora : loras) {
    check(!lora.path.empty(), "loras.path", "it is empty");
    check_range("loras.strength", lora.strength, -10, 10);
    check_range("loras.text_strength", lora.text_strength.value_or(0), -10, 10);
  }
}

template <typename Names>
std::vector<NamedChoice> choices(const Names& names) {
  std::vector<NamedChoice> out;
  for (const auto& entry : names) {
    out.push_back({std::string(entry.name), {entry.aliases.begin(), entry.aliases.end()}});
  }
  return out;
}

}  // namespace

void validate(const ImageRequest& request) {
  check_bytes("prompt", request.prompt, kMaxPromptBytes);
  check_bytes("negative_prompt", request.negative_prompt, kMaxPromptBytes);
  check_range("clip_skip", request.clip_skip, 0, 12);
  check_side("width", request.width);
  check_side("height", request.height);
  if (request.steps != 0) check_range("steps", request.steps, 1, 150);
  if (request.guidance_scale) check_range("guidance_scale", *request.guidance_scale, 0, 30);
  check_range("guidance_rescale", request.guidance_rescale, 0, 1);
  if (request.eta) check_range("eta", *request.eta, 0, 1);
  check_range("subseed_strength", request.variation.strength, 0, 1);
  check_range("eta_noise_seed_delta", request.seed_delta, 0, INT32_MAX);
  check_range("s_churn", request.added_noise.churn, 0, 100);
  check_range("s_tmin", request.added_noise.tmin, 0, 1000);
  check_range("s_tmax", request.added_noise.tmax, 0, 1000);
  check_range("s_noise", request.added_noise.noise, 0, 2);
  check_seed_size(request);
  check_range("count", request.count, 1, kMaxCount);
  check_range("batch", request.batch, 0, kMaxCount);
  check_range("strength", request.strength, 0, 1);
  check_range("mask_blur", request.mask_blur, 0, 64);
  check_range("mask_padding", request.mask_padding, 0, 512);
  check_range("preview_interval", request.preview_interval, 0, 150);
  check_range("preview_count", request.preview_count, 0, 150);
  check_bytes("init_image", request.init_image, kMaxImageBytes);
  check_bytes("mask_image", request.mask_image, kMaxImageBytes);
  check(request.mask_image.empty() || !request.init_image.empty(), "mask_image",
        "there is no init_image that it masks");
  const io::ImageFormat format = request.encoding.format;
  check(format != io::ImageFormat::gif && format != io::ImageFormat::bmp, "output_format",
        io::name(format), " is not one of png, jpeg, webp");
  check_range("output_compression", request.encoding.quality, 0, 100);
  if (request.hires) check_second_pass(*request.hires);
  check_loras(prompt_loras(request).loras);
  check(request.controls.size() <= kMaxControls, "control", request.controls.size(),
        " are more than ", kMaxControls);
  for (const ControlUse& control : request.controls) check_control(control);
}

const std::vector<NamedChoice>& sampler_choices() {
  static const std::vector<NamedChoice> kChoices = choices(diffusion::sampler_names());
  return kChoices;
}

const std::vector<NamedChoice>& schedule_choices() {
  static const std::vector<NamedChoice> kChoices = choices(diffusion::schedule_names());
  return kChoices;
}

}  // namespace rbee::engine
