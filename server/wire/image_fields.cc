#include "server/wire/image_fields.h"

#include <algorithm>

namespace rbee::server {
namespace {

using nlohmann::json;

constexpr FieldRange<int32_t> kClipSkip{-1, 12};  // -1: stable-diffusion.cpp's word for none
constexpr FieldRange<int32_t> kSeedDelta{0, INT32_MAX};
constexpr FieldRange<double> kChurn{0, 100};
constexpr FieldRange<double> kLevel{0, 1000};
constexpr FieldRange<double> kNoise{0, 2};
constexpr FieldRange<double> kLora{-10, 10};
constexpr FieldRange<double> kControl{0, 2};
constexpr size_t kMaxLoras = 16;

// The first text that is not empty: A1111's clients send an empty name where they mean another.
std::string first_text(ObjectReader& reader, std::initializer_list<const char*> names) {
  std::string out;
  for (const char* name : names) {
    const std::string text = reader.text(name).value_or("");
    if (out.empty()) out = text;
  }
  return out;
}

void read_prompt(ObjectReader& reader, ImageBody& out) {
  std::optional<std::string> prompt = reader.text("prompt");
  if (reader.find("prompt") == nullptr) reader.note("prompt", "required", "is missing", nullptr);
  out.prompt = std::move(prompt).value_or("");
  out.negative_prompt = reader.text("negative_prompt").value_or("");
}

SentLora lora(ObjectReader& fields) {
  const char* path = present(fields, {"path", "name"});
  std::optional<std::string> text = fields.text(path);
  if (fields.find(path) == nullptr) fields.note("path", "required", "is missing", nullptr);
  const char* strength = present(fields, {"strength", "multiplier", "weight"});
  return {std::move(text).value_or(""), fields.number(strength, kLora).value_or(1.0f),
          fields.number("text_strength", kLora)};
}

// A1111 writes -1 and 0 where there is none.
std::optional<int32_t> seed_side(ObjectReader& reader, const char* name, const char* other) {
  const std::optional<int32_t> value = reader.integer(name, {-1, kSide.high});
  if (!value || *value <= 0) return std::nullopt;
  const json* beside = reader.find(other);
  if (beside == nullptr || !beside->is_number() || *beside <= 0) {
    reader.note(other, "required", cat("must be given with ", name), beside);
  }
  if (*value < 8) reader.note(name, "range(8..=2048)", "must be at least 8", reader.find(name));
  return value;
}

// true and false as A1111, 1 and 0, or axes.
std::string tiling(ObjectReader& reader) {
  const json* value = reader.find("tiling");
  if (value != nullptr && !value->is_string()) {
    return flag(reader, "tiling").value_or(false) ? "both" : "none";
  }
  return choice(reader, "tiling", {"none", "x", "y", "both"});
}

void require_image(ObjectReader& reader, const char* name) {
  if (reader.find(name) != nullptr) return;
  reader.note(name, "required", "is missing: a PNG, JPEG, WebP, GIF or BMP file as base64",
              nullptr);
}

// AUTOMATIC1111's extension also takes {"image": ..., "mask": ...}.
SentImage control_image(ObjectReader& fields, const char* name) {
  const json* sent = fields.find(name);
  if (sent == nullptr || !sent->is_object()) return image(fields, name, false);
  const json picture = sent->value("image", json()), mask = sent->value("mask", json());
  if (!mask.is_null() && mask != "") {
    fields.note(cat(name, ".mask"), "null", "must be null: a ControlNet sees its whole picture",
                &mask);
  }
  if (!picture.is_string() || picture == "") {
    fields.note(cat(name, ".image"), "type(string), non_empty", "must be a base64 picture",
                &picture);
    return {};
  }
  return {.data = picture.get<std::string>()};
}

}  // namespace

const char* present(const ObjectReader& reader, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (reader.find(name) != nullptr) return name;
  }
  return *names.begin();
}

std::string choice(ObjectReader& reader, const char* name,
                   std::initializer_list<std::string_view> allowed) {
  std::optional<std::string> value = reader.text(name);
  if (!value || std::find(allowed.begin(), allowed.end(), *value) != allowed.end()) {
    return std::move(value).value_or("");
  }
  std::string list;
  for (const std::string_view entry : allowed) list += cat(list.empty() ? "" : ", ", entry);
  reader.note(name, cat("one_of(", list, ")"), cat("must be one of ", list), reader.find(name));
  return "";
}

std::optional<bool> flag(ObjectReader& reader, const char* name) {
  const json* value = reader.find(name);
  if (value == nullptr || value->is_boolean()) return reader.boolean(name);
  const std::optional<int32_t> number = reader.integer(name, {0, 1});
  return number ? std::optional<bool>(*number == 1) : std::nullopt;
}

std::optional<int32_t> side(ObjectReader& reader, const char* name) {
  const std::optional<int32_t> value = reader.integer(name, kSide);
  if (value && *value % 8 != 0) {
    const int32_t below = *value / 8 * 8;
    reader.note(name, "multiple_of(8)",
                cat("must be a multiple of 8; the nearest are ", below, " and ", below + 8),
                reader.find(name));
  }
  return value;
}

std::optional<int32_t> clip_skip(ObjectReader& reader, const char* name) {
  const std::optional<int32_t> value = reader.integer(name, kClipSkip);
  return value ? std::optional(std::max(*value, 0)) : std::nullopt;
}

SentImage image(ObjectReader& reader, const char* name, bool required) {
  std::optional<std::string> text = reader.text(name);
  if (text && text->empty()) reader.note(name, "non_empty", "is empty", reader.find(name));
  if (required) require_image(reader, name);
  return {.data = std::move(text).value_or("")};
}

SentControl control(ObjectReader& fields) {
  SentControl out;
  out.model = fields.text("model").value_or("");
  // A1111 adds a hash: "canny [d14c016b]".
  if (out.model.ends_with(']') && out.model.find(" [") != std::string::npos) {
    out.model.resize(out.model.rfind(" ["));
  }
  if (out.model == "None") out.model.clear();
  out.image = control_image(fields, present(fields, {"image", "input_image"}));
  out.scale = fields.number(present(fields, {"scale", "weight"}), kControl);
  out.start = fields.number(present(fields, {"start", "guidance_start"}), kUnit);
  out.finish = fields.number(present(fields, {"end", "guidance_end"}), kUnit);
  if (out.finish && *out.finish < out.start.value_or(0)) {
    fields.note("end", "start <= end", "must not be before the start", fields.find("end"));
  }
  const std::string module = fields.text("module").value_or("none");
  if (module != "none" && module != "None") {
    fields.note("module", "one_of(none)",
                "must be none: send the picture that the network reads, such as edges or a pose",
                fields.find("module"));
  }
  return out;
}

SentControl control_with_image(ObjectReader& fields) {
  require_image(fields, present(fields, {"image", "input_image"}));
  return control(fields);
}

void read_noise(ObjectReader& reader, ImageBody& out) {
  const auto set = [](auto& field, auto value) {
    if (value) field = value;
  };
  set(out.seed_delta, reader.integer("eta_noise_seed_delta", kSeedDelta));
  set(out.churn, reader.number("s_churn", kChurn));
  set(out.tmin, reader.number("s_tmin", kLevel));
  set(out.tmax, reader.number("s_tmax", kLevel));
  set(out.noise, reader.number("s_noise", kNoise));
}

void read_hires(ObjectReader& reader, std::vector<FieldError>& errors, ImageBody& out) {
  const json* value = reader.find("hires");
  if (value == nullptr) return;
  if (!value->is_object()) {
    reader.note("hires", "type(object)", "must be an object", value);
    return;
  }
  ObjectReader fields(*value, "hires.", errors);
  out.hires = SentHires{.scale = fields.number("scale", kHiresScale),
                        .width = side(fields, "width"),
                        .height = side(fields, "height"),
                        .steps = fields.integer("steps", {0, kSteps.high}),
                        .strength = fields.number("strength", kUnit),
                        .upscaler = fields.text("upscaler").value_or("")};
}

void read_common(ObjectReader& reader, std::vector<FieldError>& errors, ImageBody& out) {
  read_prompt(reader, out);
  out.prompt_rule = choice(reader, "prompt_rule", {"a1111", "comfy", "none"});
  out.clip_skip = clip_skip(reader, "clip_skip");
  out.steps = reader.integer(present(reader, {"steps", "num_inference_steps"}), kSteps);
  out.guidance_scale = reader.number(present(reader, {"guidance_scale", "cfg_scale"}), kGuidance);
  out.guidance_rescale = reader.number("guidance_rescale", kUnit);
  out.sampler = first_text(reader, {"sampler", "sampler_name", "sampler_index"});
  out.schedule = reader.text(present(reader, {"schedule", "scheduler"})).value_or("");
  out.eta = reader.number("eta", kUnit);
  out.seed = reader.seed("seed");
  out.subseed = reader.seed("subseed");
  out.subseed_strength = reader.number("subseed_strength", kUnit);
  out.seed_width = seed_side(reader, "seed_resize_from_w", "seed_resize_from_h");
  out.seed_height = seed_side(reader, "seed_resize_from_h", "seed_resize_from_w");
  read_noise(reader, out);
  out.noise_source = choice(reader, "noise_source", {"torch", "philox"});
  each_object(reader, present(reader, {"loras", "lora"}), kMaxLoras, errors,
              [&](ObjectReader& fields) { out.loras.push_back(lora(fields)); });
  each_object(reader, "control", kMaxControls, errors,
              [&](ObjectReader& fields) { out.controls.push_back(control_with_image(fields)); });
  out.preview_interval = reader.integer("preview_interval", {0, kSteps.high});
  out.tiling = tiling(reader);
  out.tiled_vae = reader.boolean("tiled_vae").value_or(false);
  out.output_format = choice(reader, "output_format", {"png", "jpeg", "webp"});
  out.output_compression = reader.integer("output_compression", kQuality);
  out.upscaler = reader.text("upscaler").value_or("");
  out.mask_invert = reader.boolean("mask_invert").value_or(false);
  out.mask_blur = reader.integer("mask_blur", kBlur);
  out.mask_fill = choice(reader, "mask_fill", {"original", "noise", "nothing", "surroundings"});
  out.mask_only = reader.boolean("mask_only").value_or(false);
  out.mask_padding = reader.integer("mask_padding", kPadding);
  out.strength = reader.number(present(reader, {"strength", "denoising_strength"}), kUnit);
  out.strength_rule = choice(reader, "strength_rule", {"part", "a1111", "all"});
}

void finish(std::vector<FieldError>& errors) {
  if (!errors.empty()) throw InvalidBody(std::move(errors));
}

}  // namespace rbee::server
