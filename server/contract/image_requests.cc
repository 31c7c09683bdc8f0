#include "server/contract/image_requests.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "rbee/core/cat.h"
#include "server/contract/json_object.h"

namespace rbee::server {
namespace {

using nlohmann::json;

// Ranges of rbee/engine/image_api.h.
constexpr Range<int32_t> kSide{64, 2048};
constexpr Range<int32_t> kSteps{1, 150};
constexpr Range<int32_t> kCount{1, 16};
constexpr Range<int32_t> kClipSkip{-1, 12};  // -1: stable-diffusion.cpp's word for none
constexpr Range<int32_t> kBlur{0, 64};
constexpr Range<int32_t> kPadding{0, 512};
constexpr Range<int32_t> kPartials{0, 3};
constexpr Range<int32_t> kQuality{0, 100};
constexpr Range<double> kGuidance{0, 30};
constexpr Range<double> kUnit{0, 1};
constexpr Range<int32_t> kSeedDelta{0, INT32_MAX};
constexpr Range<double> kChurn{0, 100};
constexpr Range<double> kLevel{0, 1000};
constexpr Range<double> kNoise{0, 2};
constexpr Range<double> kLora{-10, 10};
constexpr Range<double> kHiresScale{1, 4};
constexpr Range<double> kControl{0, 2};
constexpr size_t kMaxLoras = 16;
constexpr size_t kMaxControls = 8;

// The first of several names for the same thing that is there.
const char* present(const ObjectReader& reader, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (reader.find(name) != nullptr) return name;
  }
  return *names.begin();
}

// The first text that is not empty: A1111's clients send an empty name where they mean another.
std::string first_text(ObjectReader& reader, std::initializer_list<const char*> names) {
  std::string out;
  for (const char* name : names) {
    const std::string text = reader.text(name).value_or("");
    if (out.empty()) out = text;
  }
  return out;
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

// true and false, or 1 and 0.
std::optional<bool> flag(ObjectReader& reader, const char* name) {
  const json* value = reader.find(name);
  if (value == nullptr || value->is_boolean()) return reader.boolean(name);
  const std::optional<int32_t> number = reader.integer(name, {0, 1});
  return number ? std::optional<bool>(*number == 1) : std::nullopt;
}

std::optional<int32_t> side(ObjectReader& reader, const char* name) {
  const std::optional<int32_t> value = reader.integer(name, kSide);
  if (value && *value % 8 != 0) {
    reader.note(name, "multiple_of(8)", "must be a multiple of 8", reader.find(name));
  }
  return value;
}

SentImage image(ObjectReader& reader, const char* name, bool required) {
  std::optional<std::string> text = reader.text(name);
  if (text && text->empty()) reader.note(name, "non_empty", "is empty", reader.find(name));
  if (required && reader.find(name) == nullptr) {
    reader.note(name, "required", "is missing: a PNG, JPEG, WebP or GIF file as base64", nullptr);
  }
  return {.data = std::move(text).value_or("")};
}

void read_prompt(ObjectReader& reader, ImageBody& out) {
  std::optional<std::string> prompt = reader.text("prompt");
  if (reader.find("prompt") == nullptr) reader.note("prompt", "required", "is missing", nullptr);
  out.prompt = std::move(prompt).value_or("");
  out.negative_prompt = reader.text("negative_prompt").value_or("");
}

// Calls `read` with each entry of a list of objects; notes what is none.
template <typename Read>
void each_object(ObjectReader& reader, const char* name, size_t most,
                 std::vector<FieldError>& errors, const Read& read) {
  const json* list = reader.find(name);
  if (list == nullptr) return;
  if (!list->is_array() || list->size() > most) {
    reader.note(name, cat("type(array), max_count(", most, ")"),
                cat("must be an array of at most ", most), list);
    return;
  }
  for (size_t i = 0; i < list->size(); ++i) {
    const json& entry = (*list)[i];
    if (!entry.is_object()) {
      reader.note(cat(name, "[", i, "]"), "type(object)", "must be an object", &entry);
      continue;
    }
    ObjectReader fields(entry, cat(name, "[", i, "]."), errors);
    read(fields);
  }
}

SentLora lora(ObjectReader& fields) {
  const char* path = present(fields, {"path", "name"});
  std::optional<std::string> text = fields.text(path);
  if (fields.find(path) == nullptr) fields.note("path", "required", "is missing", nullptr);
  const char* strength = present(fields, {"strength", "multiplier", "weight"});
  return {std::move(text).value_or(""), fields.number(strength, kLora).value_or(1.0f),
          fields.number("text_strength", kLora)};
}

// Our own names, and those of AUTOMATIC1111's extension. Pictures are taken as they are: there are
// no detectors that would make edges or poses of a photograph.
SentControl control(ObjectReader& fields) {
  SentControl out;
  out.model = fields.text("model").value_or("");
  // A1111 adds a hash: "canny [d14c016b]".
  if (out.model.ends_with(']') && out.model.find(" [") != std::string::npos) {
    out.model.resize(out.model.rfind(" ["));
  }
  if (out.model == "None") out.model.clear();
  out.image = image(fields, present(fields, {"image", "input_image"}), true);
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

// true and false as A1111, or axes.
std::string tiling(ObjectReader& reader) {
  const json* value = reader.find("tiling");
  if (value != nullptr && !value->is_string()) {
    return reader.boolean("tiling").value_or(false) ? "both" : "none";
  }
  return choice(reader, "tiling", {"none", "x", "y", "both"});
}

// What samplers add, and what is added to the seeds; also within A1111's override_settings.
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

std::optional<int32_t> clip_skip(ObjectReader& reader, const char* name) {
  const std::optional<int32_t> value = reader.integer(name, kClipSkip);
  return value ? std::optional(std::max(*value, 0)) : std::nullopt;
}

// What all APIs call by the same names.
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
              [&](ObjectReader& fields) { out.controls.push_back(control(fields)); });
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

// "1024x768", or "auto" for the model's own.
void read_size(ObjectReader& reader, ImageBody& out) {
  const std::optional<std::string> size = reader.text("size");
  if (!size || *size == "auto") return;
  const char* const end = size->data() + size->size();
  int32_t width = 0, height = 0;
  const auto first = std::from_chars(size->data(), end, width);
  const bool split = first.ec == std::errc() && first.ptr != end && *first.ptr == 'x';
  const auto second = split ? std::from_chars(first.ptr + 1, end, height) : first;
  const auto fits = [](int32_t v) { return v >= kSide.low && v <= kSide.high && v % 8 == 0; };
  if (!split || second.ec != std::errc() || second.ptr != end || !fits(width) || !fits(height)) {
    reader.note("size", cat("<width>x<height>, range(", kSide.low, "..=", kSide.high, ")"),
                cat("must be auto or <width>x<height>, multiples of 8 from ", kSide.low, " to ",
                    kSide.high),
                reader.find("size"));
    return;
  }
  out.width = width;
  out.height = height;
}

// What OpenAI's image API has on top.
void read_openai(ObjectReader& reader, ImageBody& out) {
  read_size(reader, out);
  out.count = reader.integer("n", kCount);
  out.stream = reader.boolean("stream").value_or(false);
  out.partials = reader.integer("partial_images", kPartials);
  out.as_url = choice(reader, "response_format", {"b64_json", "url"}) == "url";
  if (!out.output_compression) out.output_compression = kQuality.high;
  choice(reader, "background", {"auto", "opaque"});
  for (const char* name : {"frame_count", "frame_duration_ms", "svg", "markup"}) {
    const json* value = reader.find(name);
    const bool still = value != nullptr && name == std::string_view("frame_count") && *value == 1;
    if (value == nullptr || still) continue;
    reader.note(name, "unsupported", "asks for what this worker does not do", value);
  }
}

void finish(std::vector<FieldError>& errors) {
  if (!errors.empty()) throw InvalidBody(std::move(errors));
}

std::optional<ImageOperation> operation_of(ObjectReader& reader) {
  const std::optional<std::string> name = reader.text("operation");
  if (name == "image_generation") return ImageOperation::generation;
  if (name == "image_transform") return ImageOperation::transform;
  if (name == "image_inpaint") return ImageOperation::inpaint;
  constexpr const char* kAll = "image_generation, image_transform, image_inpaint";
  reader.note("operation", cat("one_of(", kAll, ")"), cat("must be one of ", kAll),
              reader.find("operation"));
  return std::nullopt;
}

// A multipart field as the JSON value that it means.
json field_value(const std::string& name, const std::string& text) {
  constexpr std::array<std::string_view, 15> kTexts = {
      "prompt",       "negative_prompt", "size",          "response_format", "output_format",
      "sampler",      "sampler_name",    "schedule",      "scheduler",       "prompt_rule",
      "noise_source", "mask_fill",       "strength_rule", "background",      "upscaler"};
  if (std::find(kTexts.begin(), kTexts.end(), name) != kTexts.end()) return text;
  json value = json::parse(text, nullptr, false);
  return value.is_number() || value.is_boolean() ? value : json(text);
}

// Of a second pass, which has the first one's here.
void refuse_other_hires(ObjectReader& reader) {
  for (const char* name : {"hr_checkpoint_name", "hr_sampler_name", "hr_scheduler", "hr_prompt",
                           "hr_negative_prompt"}) {
    const std::string value = reader.text(name).value_or("");
    if (value.empty() || value.starts_with("Use same ")) continue;
    reader.note(name, "empty", "must be empty: a second pass has what the first one has",
                reader.find(name));
  }
}

void read_hires_fields(ObjectReader& reader, ImageBody& out) {
  constexpr float kStrength = 0.75f;  // A1111's
  const bool enabled = reader.boolean("enable_hr").value_or(false);
  // 0 stands for absent, as in A1111.
  const auto side_of = [&](const char* name) {
    const json* value = reader.find(name);
    return value != nullptr && *value == 0 ? std::nullopt : side(reader, name);
  };
  SentHires hires{.scale = reader.number("hr_scale", kHiresScale),
                  .width = side_of("hr_resize_x"),
                  .height = side_of("hr_resize_y"),
                  .steps = reader.integer("hr_second_pass_steps", {0, kSteps.high}),
                  .strength = reader.number("denoising_strength", kUnit).value_or(kStrength),
                  .upscaler = reader.text("hr_upscaler").value_or("")};
  if (!enabled) return;
  refuse_other_hires(reader);
  out.hires = std::move(hires);
}

// AUTOMATIC1111's defaults are others than ours.
void read_inpainting(ObjectReader& reader, ImageBody& out) {
  constexpr int32_t kBlurred = 4;
  out.mask_opaque = true;
  out.mask_invert = flag(reader, "inpainting_mask_invert").value_or(false);
  constexpr std::array<const char*, 4> kFills = {"surroundings", "original", "noise", "nothing"};
  const auto fill = reader.integer("inpainting_fill", {0, 3}).value_or(0);
  out.mask_fill = kFills[static_cast<size_t>(fill)];
  out.mask_only = flag(reader, "inpaint_full_res").value_or(true);
  out.mask_padding = reader.integer("inpaint_full_res_padding", kPadding).value_or(0);
  const auto across = reader.integer("mask_blur_x", kBlur);
  const auto down = reader.integer("mask_blur_y", kBlur);
  if (out.mask_blur) return;
  out.mask_blur = across.value_or(kBlurred);
  if (out.mask_blur != down.value_or(kBlurred)) {
    reader.note("mask_blur_x", "equal(mask_blur_y)", "must be the same as mask_blur_y (4)",
                reader.find("mask_blur_x"));
  }
}

// init_images: a list of one.
void read_init_images(ObjectReader& reader, ImageBody& out) {
  const json* list = reader.find("init_images");
  const bool good = list != nullptr && list->is_array() && list->size() == 1 &&
                    (*list)[0].is_string() && !(*list)[0].get_ref<const std::string&>().empty();
  if (!good) {
    reader.note("init_images", "type(array), count(1)", "must be an array with one base64 picture",
                list);
    return;
  }
  out.init_image.data = (*list)[0].get<std::string>();
  out.init_on_white = true;
  constexpr std::array<const char*, 3> kFits = {"stretch", "crop", "fill"};
  const auto fit = reader.integer("resize_mode", {0, 2}).value_or(0);
  out.fit = kFits[static_cast<size_t>(fit)];
  out.mask_image.data = reader.text("mask").value_or("");
  if (!out.mask_image.empty()) read_inpainting(reader, out);
}

// {"alwayson_scripts": {"controlnet": {"args": [...]}}}
void read_control_script(const json& object, std::vector<FieldError>& errors, ImageBody& out) {
  const json* at = &object;
  for (const char* name : {"alwayson_scripts", "controlnet"}) {
    const auto found = at->is_object() ? at->find(name) : at->end();
    if (found == at->end() || !found->is_object()) return;
    at = &*found;
  }
  ObjectReader script(*at, "alwayson_scripts.controlnet.", errors);
  each_object(script, "args", kMaxControls, errors, [&](ObjectReader& fields) {
    if (fields.boolean("enabled").value_or(true)) out.controls.push_back(control(fields));
  });
}

// Of {"override_settings": {...}} what changes a picture here; one model is served.
void read_overrides(const json& object, std::vector<FieldError>& errors, ImageBody& out) {
  const auto found = object.find("override_settings");
  if (found == object.end() || !found->is_object()) return;
  ObjectReader reader(*found, "override_settings.", errors);
  const auto skip = clip_skip(reader, "CLIP_stop_at_last_layers");
  if (skip) out.clip_skip = skip;
  read_noise(reader, out);
  out.checkpoint = reader.text("sd_model_checkpoint").value_or("");
  const std::string format = choice(reader, "samples_format", {"png", "jpg", "jpeg", "webp"});
  if (!format.empty()) out.output_format = format == "jpg" ? "jpeg" : format;
  constexpr int32_t kCustomary = 80;
  const auto quality = reader.integer("jpeg_quality", kQuality);  // of webp too
  if (quality || !out.output_compression) out.output_compression = quality.value_or(kCustomary);
}

// What would change a picture and is not there, where it is asked for: a picture without it would
// be another one.
void refuse_absent(ObjectReader& reader) {
  if (flag(reader, "restore_faces").value_or(false)) {
    reader.note("restore_faces", "one_of(false)", "must be false: this worker does not do it",
                reader.find("restore_faces"));
  }
  if (!reader.text("refiner_checkpoint").value_or("").empty()) {
    reader.note("refiner_checkpoint", "empty", "must be empty: one model is served",
                reader.find("refiner_checkpoint"));
  }
  if (!reader.text("script_name").value_or("").empty()) {
    reader.note("script_name", "empty", "must be empty: this worker has no scripts",
                reader.find("script_name"));
  }
  const json* styles = reader.find("styles");
  if (styles != nullptr && !styles->empty()) {
    reader.note("styles", "empty", "must be empty: this worker has no styles", styles);
  }
  const json* noise = reader.find("initial_noise_multiplier");
  if (noise != nullptr && *noise != 1) {
    reader.note("initial_noise_multiplier", "one_of(1)", "must be 1: this worker does not do it",
                noise);
  }
}

}  // namespace

ImageJobBody parse_image_job(std::string_view body) {
  const json object = parse_object(body);
  std::vector<FieldError> errors;
  ObjectReader reader(object, "", errors);
  ImageJobBody out;
  out.operation = operation_of(reader).value_or(ImageOperation::generation);
  read_common(reader, errors, out.image);
  out.image.count = reader.integer(present(reader, {"count", "num_images"}), kCount);
  out.image.batch = reader.integer("batch", {0, kCount.high});
  out.image.width = side(reader, "width");
  out.image.height = side(reader, "height");
  if (out.operation == ImageOperation::generation) {
    read_hires(reader, errors, out.image);
  } else {
    const char* name = present(
        reader, out.operation == ImageOperation::transform
                    ? std::initializer_list<const char*>{"input_image", "init_image", "image"}
                    : std::initializer_list<const char*>{"init_image", "input_image", "image"});
    out.image.init_image = image(reader, name, true);
  }
  if (out.operation == ImageOperation::inpaint) {
    out.image.mask_image = image(reader, present(reader, {"mask_image", "mask"}), true);
    if (!out.image.strength) out.image.strength = 1.0f;
  }
  finish(errors);
  return out;
}

ImageBody parse_openai_generation(std::string_view body) {
  const json object = parse_object(body);
  std::vector<FieldError> errors;
  ObjectReader reader(object, "", errors);
  ImageBody out;
  read_common(reader, errors, out);
  read_openai(reader, out);
  read_hires(reader, errors, out);
  finish(errors);
  return out;
}

ImageBody parse_openai_edit(const std::vector<std::pair<std::string, std::string>>& fields,
                            const std::vector<std::pair<std::string, std::string>>& files) {
  json object = json::object();
  for (const auto& [name, text] : fields) object[name] = field_value(name, text);
  std::vector<FieldError> errors;
  ObjectReader reader(object, "", errors);
  ImageBody out;
  read_common(reader, errors, out);
  read_openai(reader, out);
  for (const auto& [name, bytes] : files) {
    SentImage sent{.data = bytes, .base64 = false};
    const bool picture = name == "image" || name == "image[]";
    if (picture && out.init_image.empty()) {
      out.init_image = std::move(sent);
    } else if (picture) {
      reader.note("image", "max_count(1)", "can be given once to this model", nullptr);
    } else if (name == "mask") {
      out.mask_image = std::move(sent);
    }
  }
  if (out.init_image.empty()) reader.note("image", "required", "is missing: a file", nullptr);
  if (!out.strength && !out.mask_image.empty()) out.strength = 1.0f;
  finish(errors);
  return out;
}

std::string parse_png_info(std::string_view body) {
  const json object = parse_object(body);
  std::vector<FieldError> errors;
  ObjectReader reader(object, "", errors);
  SentImage sent = image(reader, "image", true);
  finish(errors);
  return std::move(sent.data);
}

SdapiUpscale parse_sdapi_upscale(std::string_view body) {
  constexpr Range<double> kFactor{0.05, 8};
  constexpr Range<int32_t> kPixels{1, 4096};
  const json object = parse_object(body);
  std::vector<FieldError> errors;
  ObjectReader reader(object, "", errors);
  SdapiUpscale out;
  out.image = image(reader, "image", true).data;
  out.upscaler = reader.text("upscaler_1").value_or("");
  if (out.upscaler.empty()) out.upscaler = "None";
  out.to_size = reader.integer("resize_mode", {0, 1}).value_or(0) == 1;
  out.factor = reader.number("upscaling_resize", kFactor).value_or(out.factor);
  out.width = reader.integer("upscaling_resize_w", kPixels).value_or(out.width);
  out.height = reader.integer("upscaling_resize_h", kPixels).value_or(out.height);
  out.crop = flag(reader, "upscaling_crop").value_or(out.crop);
  finish(errors);
  return out;
}

ImageBody parse_sdapi(std::string_view body, bool img2img) {
  json object = parse_object(body);
  if (!object.contains("prompt")) object["prompt"] = "";  // as A1111
  std::vector<FieldError> errors;
  ObjectReader reader(object, "", errors);
  ImageBody out;
  read_common(reader, errors, out);
  out.width = side(reader, "width");
  out.height = side(reader, "height");
  const int32_t rounds = reader.integer("n_iter", kCount).value_or(1);
  const int32_t batch = reader.integer("batch_size", kCount).value_or(1);
  if (rounds * batch > kCount.high) {
    reader.note("n_iter", cat("n_iter * batch_size <= ", kCount.high),
                cat("times batch_size must be at most ", kCount.high), reader.find("n_iter"));
  }
  out.count = rounds * batch;
  out.batch = batch;
  out.send_images = reader.boolean("send_images").value_or(true);
  refuse_absent(reader);
  read_control_script(object, errors, out);
  read_overrides(object, errors, out);
  if (out.noise_source.empty()) out.noise_source = "philox";
  if (out.strength_rule.empty()) out.strength_rule = "a1111";
  if (img2img) {
    read_init_images(reader, out);
    if (!out.strength) out.strength = 0.75f;
  } else {
    out.strength.reset();
    read_hires_fields(reader, out);
  }
  finish(errors);
  if (img2img) object["init_images"] = object["mask"] = nullptr;
  out.request = object.dump();
  return out;
}

}  // namespace rbee::server
