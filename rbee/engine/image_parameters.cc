#include "rbee/engine/image_parameters.h"

#include <algorithm>
#include <charconv>

namespace rbee::engine {
namespace {

constexpr std::string_view kNegative = "Negative prompt: ";
constexpr std::string_view kSteps = "Steps: ";

template <typename T>
T number(std::string_view key, std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(error == std::errc{} && end == text.data() + text.size(), key, "\"", text,
        "\" is no number of its kind");
  return value;
}

void set_size(int32_t& width, int32_t& height, std::string_view key, std::string_view value) {
  const size_t cross = value.find('x');
  check(cross != std::string_view::npos, key, "\"", value, "\" is not of the form 512x512");
  width = number<int32_t>(key, value.substr(0, cross));
  height = number<int32_t>(key, value.substr(cross + 1));
}

HiresFix& hires_of(ImageRequest& request) {
  if (!request.hires) request.hires.emplace();
  return *request.hires;
}

StrengthRule rule_of(std::string_view name) {
  if (name == "Part") return StrengthRule::part;
  return name == "All" ? StrengthRule::all : StrengthRule::a1111;
}

MaskFill fill_of(std::string_view name) {
  if (name == "fill") return MaskFill::surroundings;
  if (name == "latent noise") return MaskFill::noise;
  return name == "latent nothing" ? MaskFill::nothing : MaskFill::original;
}

Tiling tiling_of(std::string_view name) {
  if (name == "True") return Tiling::both;
  if (name == "X") return Tiling::x;
  return name == "Y" ? Tiling::y : Tiling::none;
}

void set_noise(ImageRequest& request, std::string_view key, std::string_view value) {
  AddedNoise& added = request.added_noise;
  if (key == "Eta" || key == "Eta DDIM") request.eta = number<float>(key, value);
  if (key == "ENSD") request.seed_delta = number<int32_t>(key, value);
  if (key == "Seed resize from") {
    set_size(request.seed_width, request.seed_height, key, value);
  }
  if (key == "Sigma churn") added.churn = number<float>(key, value);
  if (key == "Sigma tmin") added.tmin = number<float>(key, value);
  if (key == "Sigma tmax") added.tmax = number<float>(key, value);
  if (key == "Sigma noise") added.noise = number<float>(key, value);
}

void set_field(ImageRequest& request, std::string_view key, std::string_view value) {
  set_noise(request, key, value);
  if (key == "Steps") request.steps = number<int32_t>(key, value);
  if (key == "Sampler") request.sampler = value;
  if (key == "Schedule type") request.schedule = value;
  if (key == "CFG scale") request.guidance_scale = number<float>(key, value);
  if (key == "CFG Rescale") request.guidance_rescale = number<float>(key, value);
  if (key == "Seed") request.seed = number<uint64_t>(key, value);
  if (key == "Variation seed") request.variation.seed = number<uint64_t>(key, value);
  if (key == "Variation seed strength") request.variation.strength = number<float>(key, value);
  if (key == "Size") set_size(request.width, request.height, key, value);
  if (key == "RNG" && value == "CPU") request.noise_source = NoiseSource::torch;
  if (key == "Strength rule") request.strength_rule = rule_of(value);
  if (key == "Emphasis" && value == "None") request.prompt_rule = PromptRule::none;
  if (key == "Emphasis" && value == "Comfy") request.prompt_rule = PromptRule::comfy;
  if (key == "Clip skip") request.clip_skip = number<int32_t>(key, value);
  if (key == "Denoising strength") request.strength = number<float>(key, value);
  if (key == "Tiling") request.tiling = tiling_of(value);
  if (key == "Mask blur") request.mask_blur = number<int32_t>(key, value);
  if (key == "Masked content") request.mask_fill = fill_of(value);
  if (key == "Inpaint area") request.mask_only = value == "Only masked";
  if (key == "Masked area padding") request.mask_padding = number<int32_t>(key, value);
  if (key == "Hires upscale") hires_of(request).scale = number<float>(key, value);
  if (key == "Hires resize") {
    set_size(hires_of(request).width, hires_of(request).height, key, value);
  }
  if (key == "Hires upscaler") hires_of(request).upscaler = value;
  if (key == kHiresStrength) hires_of(request).strength = number<float>(key, value);
  if (key == "Hires steps") hires_of(request).steps = number<int32_t>(key, value);
}

// The end of a value that begins at `at`: a comma, but not within quotes.
size_t value_end(std::string_view line, size_t at) {
  bool quoted = false;
  for (; at < line.size(); ++at) {
    if (line[at] == '\\' && quoted) {
      ++at;
    } else if (line[at] == '"') {
      quoted = !quoted;
    } else if (line[at] == ',' && !quoted) {
      return at;
    }
  }
  return line.size();
}

// What quoted() of image_settings.cc makes, or AUTOMATIC1111's json.dumps().
std::string unquoted(std::string_view text) {
  const bool quotes = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  if (!quotes) return std::string(text);
  text = text.substr(1, text.size() - 2);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 1 < text.size();
    if (escape) ++i;
    out += escape && text[i] == 'n' ? '\n' : text[i];
  }
  return out;
}

// "Steps: 20, Sampler: Euler a, ..."
void set_fields(ImageRequest& request, std::string_view line) {
  while (!line.empty()) {
    const size_t colon = line.find(": ");
    if (colon == std::string_view::npos) return;
    const size_t end = value_end(line, colon + 2);
    set_field(request, line.substr(0, colon), unquoted(line.substr(colon + 2, end - colon - 2)));
    line.remove_prefix(std::min(line.size(), end + 1));
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  }
}

}  // namespace

ImageRequest parse_parameters(std::string_view text) {
  ImageRequest out;
  out.noise_source = NoiseSource::philox;
  out.strength_rule = StrengthRule::a1111;
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  const size_t last_line = text.rfind('\n') + 1;  // npos + 1 is 0
  std::string_view prompts = text;
  const std::string_view line = text.substr(last_line);
  if (line.starts_with(kSteps)) {
    // Here a generator on the CPU comes with diffusers' rule; AUTOMATIC1111 has no other than its.
    const bool own = line.ends_with("Version: rbee.cpp");
    if (own && line.find("RNG: CPU") != std::string_view::npos) {
      out.strength_rule = StrengthRule::part;
    }
    set_fields(out, line);
    prompts = text.substr(0, last_line == 0 ? 0 : last_line - 1);
  }
  const std::string in_lines = cat("\n", prompts);
  const size_t negative = in_lines.find(cat("\n", kNegative));
  if (negative != std::string::npos) {
    out.negative_prompt = in_lines.substr(negative + 1 + kNegative.size());
  }
  if (negative != 0) out.prompt = in_lines.substr(1, negative - 1);
  // AUTOMATIC1111's one key is a second pass's where there is one.
  const bool named = line.find(cat(kHiresStrength, ": ")) != std::string_view::npos;
  if (out.hires && !named) out.hires->strength = out.strength;
  return out;
}

}  // namespace rbee::engine
