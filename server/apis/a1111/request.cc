#include "server/apis/a1111/request.h"

#include <algorithm>
#include <array>
#include <utility>

#include "rbee/core/error.h"
#include "server/apis/a1111/absent_fields.h"
#include "server/wire/image_fields.h"

namespace rbee::server {
namespace {

using nlohmann::json;
using Settings = engine::ImageRequest;
using engine::NoiseSource;

// Fields that AUTOMATIC1111's API declares as numbers or booleans.
constexpr LaxField kLaxFields[] = {
    {"seed", LaxKind::number},
    {"subseed", LaxKind::number},
    {"subseed_strength", LaxKind::number},
    {"seed_resize_from_h", LaxKind::number},
    {"seed_resize_from_w", LaxKind::number},
    {"batch_size", LaxKind::number},
    {"n_iter", LaxKind::number},
    {"steps", LaxKind::number},
    {"cfg_scale", LaxKind::number},
    {"distilled_cfg_scale", LaxKind::number},
    {"width", LaxKind::number},
    {"height", LaxKind::number},
    {"eta", LaxKind::number},
    {"denoising_strength", LaxKind::number},
    {"s_min_uncond", LaxKind::number},
    {"s_churn", LaxKind::number},
    {"s_tmax", LaxKind::number},
    {"s_tmin", LaxKind::number},
    {"s_noise", LaxKind::number},
    {"initial_noise_multiplier", LaxKind::number},
    {"hr_scale", LaxKind::number},
    {"hr_second_pass_steps", LaxKind::number},
    {"hr_resize_x", LaxKind::number},
    {"hr_resize_y", LaxKind::number},
    {"hr_cfg", LaxKind::number},
    {"hr_distilled_cfg", LaxKind::number},
    {"firstphase_width", LaxKind::number},
    {"firstphase_height", LaxKind::number},
    {"resize_mode", LaxKind::number},
    {"mask_blur", LaxKind::number},
    {"mask_blur_x", LaxKind::number},
    {"mask_blur_y", LaxKind::number},
    {"inpainting_fill", LaxKind::number},
    {"inpaint_full_res_padding", LaxKind::number},
    {"inpainting_mask_invert", LaxKind::number},
    {"restore_faces", LaxKind::truth},
    {"disable_extra_networks", LaxKind::truth},
    {"send_images", LaxKind::truth},
    {"enable_hr", LaxKind::truth},
    {"inpaint_full_res", LaxKind::truth},
    {"mask_round", LaxKind::truth},
};

constexpr LaxField kLaxTiling[] = {{"tiling", LaxKind::truth}};

constexpr LaxField kLaxUnit[] = {
    {"enabled", LaxKind::truth},         {"weight", LaxKind::number},
    {"guidance_start", LaxKind::number}, {"guidance_end", LaxKind::number},
    {"resize_mode", LaxKind::number},    {"control_mode", LaxKind::number},
};

constexpr LaxField kLaxOptions[] = {{"jpeg_quality", LaxKind::number}};

constexpr LaxField kLaxFieldsOfEnlarging[] = {
    {"gfpgan_visibility", LaxKind::number},
    {"codeformer_visibility", LaxKind::number},
    {"extras_upscaler_2_visibility", LaxKind::number},
    {"upscaling_resize", LaxKind::number},
    {"upscaling_resize_w", LaxKind::number},
    {"upscaling_resize_h", LaxKind::number},
    {"upscaling_crop", LaxKind::truth},
};

// The options of override_settings and /sdapi/v1/options.
template <typename Object>
void read_options_laxly(Object& object) {
  read_laxly(object, lax_fields(absent_options()));
  read_laxly(object, lax_fields(fixed_options()));
  read_laxly(object, kLaxOptions);
}

// AUTOMATIC1111's own scripts; they do nothing while they are switched off.
constexpr const char* kScriptsOfA1111[] = {"comments", "extra options", "hypertile",      "refiner",
                                           "sampler",  "seed",          "soft inpainting"};

// Settings of the second pass, which must equal those of the first here.
void refuse_other_hires(ObjectReader& reader) {
  constexpr std::pair<const char*, const char*> kSame[] = {
      {"hr_sampler_name", "sampler_name"},
      {"hr_scheduler", "scheduler"},
      {"hr_prompt", "prompt"},
      {"hr_negative_prompt", "negative_prompt"}};
  for (const auto& [name, first] : kSame) {
    const std::string value = reader.text(name).value_or("");
    if (value.empty() || value.starts_with("Use same ")) continue;
    const json* same = reader.find(first);
    if (same != nullptr && *same == value) continue;
    reader.note(name, "empty", "must be empty: a second pass has what the first one has",
                reader.find(name));
  }
  for (const auto& [name, first] :
       {std::pair{"hr_cfg", "cfg_scale"}, std::pair{"hr_distilled_cfg", "distilled_cfg_scale"}}) {
    const json* value = reader.find(name);
    const json* same = reader.find(first);
    if (value == nullptr || (same != nullptr && *same == *value)) continue;
    reader.note(name, cat("equal(", first, ")"), cat("must be the same as ", first), value);
  }
  refuse_absent(reader, absent_of_hires());
}

constexpr float kStrength = 0.75f;  // A1111's denoising_strength

// strength: denoising_strength.
void read_hires_fields(ObjectReader& reader, float strength, ImageBody& out) {
  using engine::HiresFix;
  const bool enabled = flag(reader, "enable_hr").value_or(false);
  // 0 means absent, as in A1111.
  const auto side_of = [&](const char* name, int32_t HiresFix::* member) {
    const json* value = reader.find(name);
    if (value != nullptr && *value == 0) return 0;
    return side(reader, name, engine::image_field(member)).value_or(0);
  };
  HiresFix hires;
  hires.scale = reader.number("hr_scale", number_range(&HiresFix::scale)).value_or(hires.scale);
  hires.width = side_of("hr_resize_x", &HiresFix::width);
  hires.height = side_of("hr_resize_y", &HiresFix::height);
  hires.steps =
      reader.integer("hr_second_pass_steps", integer_range(&HiresFix::steps)).value_or(hires.steps);
  hires.strength = strength;
  hires.upscaler = reader.text("hr_upscaler").value_or("");
  if (!enabled) return;
  refuse_other_hires(reader);
  const std::string checkpoint = reader.text("hr_checkpoint_name").value_or("");
  if (checkpoint != "Use same checkpoint") out.hires_checkpoint = checkpoint;
  out.settings.hires = std::move(hires);
}

// AUTOMATIC1111's defaults differ from ours.
void read_inpainting(ObjectReader& reader, ImageBody& out) {
  constexpr int32_t kBlurred = 4;
  Settings& settings = out.settings;
  settings.mask_opaque = true;
  settings.mask_invert = flag(reader, "inpainting_mask_invert").value_or(false);
  using engine::MaskFill;
  constexpr std::array kFills = {MaskFill::surroundings, MaskFill::original, MaskFill::noise,
                                 MaskFill::nothing};
  const auto fill = reader.integer("inpainting_fill", {0, 3}).value_or(0);
  settings.mask_fill = kFills[static_cast<size_t>(fill)];
  settings.mask_only = flag(reader, "inpaint_full_res").value_or(true);
  const auto padding = integer_range(&Settings::mask_padding);
  settings.mask_padding = reader.integer("inpaint_full_res_padding", padding).value_or(0);
  const auto blur = integer_range(&Settings::mask_blur);
  const auto across = reader.integer("mask_blur_x", blur);
  const auto down = reader.integer("mask_blur_y", blur);
  if (out.given.has(&Settings::mask_blur)) return;
  settings.mask_blur = across.value_or(kBlurred);
  if (!out.mask_image.empty() && settings.mask_blur != down.value_or(kBlurred)) {
    reader.note("mask_blur_x", "equal(mask_blur_y)", "must be the same as mask_blur_y (4)",
                reader.find("mask_blur_x"));
  }
}

using engine::Fit;
constexpr std::array kFits = {Fit::stretch, Fit::crop, Fit::fill};  // by resize_mode

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
  out.settings.init_on_white = true;
  out.settings.fit = kFits[static_cast<size_t>(reader.integer("resize_mode", {0, 2}).value_or(0))];
  out.mask_image.data = reader.text("mask").value_or("");
  ImageBody unused;  // without a mask they have no effect, but may not be anything
  read_inpainting(reader, out.mask_image.empty() ? unused : out);
}

// An id that the client chose.
std::string task(ObjectReader& reader, const char* name) {
  constexpr size_t kMost = 256;
  std::string out = reader.text(name).value_or("");
  if (out.size() > kMost) {
    reader.note(name, cat("max_length(", kMost, ")"), cat("must have at most ", kMost, " bytes"),
                reader.find(name));
  }
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return out;
}

// How a unit's picture is fitted to the request's size: a number, a label of any version of the
// extension's page, or the name in the extension's source.
Fit unit_fit(ObjectReader& unit) {
  struct Name {
    std::string_view name;
    Fit fit;
  };
  constexpr Name kNames[] = {
      {"just resize", Fit::stretch},           {"resizemode.resize", Fit::stretch},
      {"crop and resize", Fit::crop},          {"resizemode.inner_fit", Fit::crop},
      {"scale to fit (inner fit)", Fit::crop}, {"inner fit (scale to fit)", Fit::crop},
      {"resize and fill", Fit::fill},          {"resizemode.outer_fit", Fit::fill},
      {"envelope (outer fit)", Fit::fill},     {"outer fit (shrink to fit)", Fit::fill}};
  const json* value = unit.find("resize_mode");
  if (value == nullptr) return Fit::crop;
  if (!value->is_string()) {
    return kFits[static_cast<size_t>(unit.integer("resize_mode", {0, 2}).value_or(0))];
  }
  const auto found = std::ranges::find(kNames, lower(value->get<std::string>()), &Name::name);
  if (found != std::end(kNames)) return found->fit;
  constexpr const char* kAll = "Just Resize, Crop and Resize, Resize and Fill";
  unit.note("resize_mode", cat("one_of(", kAll, ")"), cat("must be one of ", kAll), value);
  return Fit::crop;
}

// Like AUTOMATIC1111's own scripts: the first argument says whether the script is on.
bool is_switched_off(const std::string& name, const json& script) {
  if (std::ranges::find(kScriptsOfA1111, name) == std::end(kScriptsOfA1111)) return false;
  if (!script.is_object() || !script.contains("args")) return script.is_object();
  const json& args = script["args"];
  return args.is_null() || (args.is_array() && (args.empty() || args.front() == false));
}

json with_lax_units(json script) {
  const auto units = script.find("args");
  if (units == script.end() || !units->is_array()) return script;
  for (json& unit : *units) {
    if (unit.is_object()) read_laxly(unit, kLaxUnit);
  }
  return script;
}

// {"alwayson_scripts": {"ControlNet": {"args": [...]}}}. As in A1111, case does not matter in a
// script's name, and an unknown script is an error. Units without a picture take that of
// init_images, if there is one.
void read_scripts(ObjectReader& reader, std::vector<FieldError>& errors, ImageBody& out) {
  const json* scripts = reader.find("alwayson_scripts");
  if (scripts == nullptr) return;
  if (!scripts->is_object()) {
    return reader.note("alwayson_scripts", "type(object)", "must be an object", scripts);
  }
  for (const auto& [name, script] : scripts->items()) {
    if (is_switched_off(lower(name), script)) continue;
    if (lower(name) != "controlnet") {
      fail(Code::unsupported, "alwayson_scripts", "always on script ", name, " not found");
    }
    if (!script.is_object()) {
      reader.note(cat("alwayson_scripts.", name), "type(object)", "must be an object", &script);
      continue;
    }
    constexpr const char* kPrefix = "alwayson_scripts.controlnet.";
    const json own = with_lax_units(script);
    ObjectReader fields(own, kPrefix, errors);
    const auto read_unit = [&](ObjectReader& unit) {
      if (!unit.boolean("enabled").value_or(true)) return;
      refuse_absent(unit, absent_of_controls());
      const bool has_init = !out.init_image.empty();
      SentControl sent = has_init ? control(unit) : control_with_image(unit);
      sent.use.fit = unit_fit(unit);
      if (sent.image.empty() && has_init) {
        sent.image = out.init_image;
        sent.use.fit = out.settings.fit;
      }
      out.controls.push_back(std::move(sent));
    };
    each_object(fields, "args", kMaxControls, errors, read_unit, kPrefix);
  }
}

// In A1111, DDIM samplers read another option than all others.
void read_eta(ObjectReader& reader, ImageBody& out) {
  const auto ancestral = reader.number("eta_ancestral", number_range(&Settings::eta));
  const auto ddim = reader.number("eta_ddim", number_range(&Settings::eta));
  const bool is_ddim = lower(out.settings.sampler).find("ddim") != std::string::npos;
  if (!out.settings.eta) out.settings.eta = is_ddim ? ddim : ancestral;
}

void read_file_options(ObjectReader& reader, ImageBody& out) {
  const std::string format = choice(reader, "samples_format", {"png", "jpg", "jpeg", "webp"});
  using enum io::ImageFormat;
  if (!format.empty()) {
    out.set(&io::Encoding::format, format == "png" ? png : format == "webp" ? webp : jpeg);
  }
  constexpr int32_t kCustomary = 80;
  const engine::ImageField& quality = engine::image_field(&io::Encoding::quality);
  read_field(reader, quality, out, "jpeg_quality");  // of webp too
  out.set_default(&io::Encoding::quality, kCustomary);
}

// AUTOMATIC1111 skips the rest of a line after "#", and a line that begins with it.
std::string without_comments(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (!line.starts_with('#')) {
      out += line.substr(0, line.find('#'));
      if (end < text.size()) out += '\n';
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// Reads the options of {"override_settings": {...}} that change pictures; one model is served.
void read_overrides(ObjectReader& body, std::vector<FieldError>& errors, ImageBody& out) {
  const json* sent = body.find("override_settings");
  if (sent != nullptr && !sent->is_object()) {
    body.note("override_settings", "type(object)", "must be an object", sent);
  }
  const bool there = sent != nullptr && sent->is_object();
  json options = there ? *sent : json::object();
  read_options_laxly(options);
  ObjectReader reader(options, "override_settings.", errors);
  Settings& settings = out.settings;
  const engine::ImageField& clip_skip = engine::image_field(&Settings::clip_skip);
  read_field(reader, clip_skip, out, "CLIP_stop_at_last_layers");
  read_noise(reader, out);
  read_eta(reader, out);
  read_file_options(reader, out);
  out.checkpoint = reader.text("sd_model_checkpoint").value_or("");
  if (settings.schedule.empty()) {
    read_field(reader, engine::image_field(&Settings::schedule), out, "k_sched_type");
  }
  const std::string source = choice(reader, "randn_source", {"GPU", "CPU", "NV"});
  if (!source.empty()) {
    out.set_default(&Settings::noise_source,
                    source == "CPU" ? NoiseSource::torch : NoiseSource::philox);
  }
  const std::string emphasis =
      choice(reader, "emphasis", {"Original", "No norm", "Ignore", "None"});
  if (emphasis == "No norm") settings.emphasis = engine::Emphasis::no_norm;
  if (emphasis == "Ignore") settings.emphasis = engine::Emphasis::ignore;
  const bool plain = emphasis == "None" || !reader.boolean("enable_emphasis").value_or(true);
  if (plain) out.set_default(&Settings::prompt_rule, engine::PromptRule::none);
  const bool all = reader.boolean("img2img_fix_steps").value_or(false);
  if (all) out.set_default(&Settings::strength_rule, engine::StrengthRule::all);
  if (flag(reader, "enable_prompt_comments").value_or(true)) {
    settings.prompt = without_comments(settings.prompt);
    settings.negative_prompt = without_comments(settings.negative_prompt);
  }
  refuse_absent(reader, absent_options());
}

// n_iter times batch_size.
void read_count(ObjectReader& reader, ImageBody& out) {
  const auto range = integer_range(&Settings::count);
  const int32_t rounds = reader.integer("n_iter", range).value_or(1);
  const int32_t batch = reader.integer("batch_size", range).value_or(1);
  if (rounds * batch > range.high) {
    reader.note("n_iter", cat("n_iter * batch_size <= ", range.high),
                cat("times batch_size must be at most ", range.high), reader.find("n_iter"));
  }
  out.set(&Settings::count, rounds * batch);
  out.set(&Settings::batch, batch);
}

}  // namespace

std::string parse_sdapi_options(std::string_view text) {
  JsonBody body(text);
  read_options_laxly(body);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  refuse_absent(reader, absent_options());
  refuse_absent(reader, fixed_options());
  std::string checkpoint = reader.text("sd_model_checkpoint").value_or("");
  finish(errors);
  return checkpoint;
}

std::string parse_png_info(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  SentImage sent = image(reader, "image", true);
  finish(errors);
  return std::move(sent.data);
}

SdapiTask parse_sdapi_task(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  SdapiTask out{.id = task(reader, "id_task")};
  const std::optional<int32_t> preview = reader.integer("id_live_preview", {-1, INT32_MAX});
  out.preview = preview.value_or(out.preview);
  finish(errors);
  return out;
}

UpscaleOrder parse_sdapi_upscale(std::string_view text, bool batch) {
  constexpr FieldRange<double> kFactor{0.05, 8};
  constexpr FieldRange<int32_t> kPixels{1, 4096};
  constexpr size_t kMostPictures = 16;
  JsonBody body(text);
  read_laxly(body, kLaxFieldsOfEnlarging);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  UpscaleOrder out;
  if (batch) {
    each_object(reader, "imageList", kMostPictures, errors, [&](ObjectReader& entry) {
      out.images.push_back(image(entry, "data", true).data);
    });
    if (errors.empty() && out.images.empty()) {
      reader.note("imageList", "min_count(1)", "must have a picture", reader.find("imageList"));
    }
  } else {
    out.images.push_back(image(reader, "image", true).data);
  }
  refuse_absent(reader, absent_of_enlarging());
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

ImageBody parse_sdapi(std::string_view text, bool img2img) {
  JsonBody body(text);
  if (body["prompt"].is_null()) body["prompt"] = "";  // as A1111
  read_laxly(body, kLaxFields);
  const bool axis = body.has("tiling") && body["tiling"] == "y";  // elsewhere it means yes
  if (!axis) read_laxly(body, kLaxTiling);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  ImageBody out;
  out.names = a1111_names();
  read_common(reader, errors, out);
  read_count(reader, out);
  out.send_images = flag(reader, "send_images").value_or(true);
  const auto guidance = number_range(&Settings::guidance_scale);
  out.distilled_guidance = reader.number("distilled_cfg_scale", guidance);
  out.task = task(reader, "force_task_id");
  refuse_absent(reader, absent_fields());
  if (img2img) {
    refuse_absent(reader, absent_of_img2img());
    read_init_images(reader, out);
  }
  read_scripts(reader, errors, out);
  read_overrides(reader, errors, out);
  out.set_default(&Settings::noise_source, NoiseSource::philox);
  out.set_default(&Settings::strength_rule, engine::StrengthRule::a1111);
  if (img2img) {
    out.set_default(&Settings::strength, kStrength);
  } else {
    const bool given = out.given.has(&Settings::strength);
    read_hires_fields(reader, given ? out.settings.strength : kStrength, out);
    out.settings.strength = Settings().strength;  // the field is the second pass's
  }
  finish(errors);
  if (img2img) body["init_images"] = body["mask"] = nullptr;
  out.request = body.object().dump();  // the fields that were read
  return out;
}

}  // namespace rbee::server
