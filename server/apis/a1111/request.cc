#include "server/apis/a1111/request.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "rbee/core/error.h"
#include "server/wire/image_fields.h"
#include "server/wire/lax_fields.h"

namespace rbee::server {
namespace {

using nlohmann::json;

// A field that changes pictures in A1111 but has no effect here.
struct Absent {
  const char* name;
  const char* without;  // JSON: a list of its neutral values
  const char* instead = "this worker does not do it";
};

constexpr Absent kAbsent[] = {
    {"restore_faces", "[false, 0]"},
    {"refiner_checkpoint", R"(["", "None"])", "one model is served"},
    {"script_name", R"(["", "None"])", "this worker has no scripts"},
    {"styles", R"([[], [""], ["None"]])", "this worker has no styles"},
    {"initial_noise_multiplier", "[1]"},
    {"s_min_uncond", "[0]"},
    {"disable_extra_networks", "[false, 0]", "take <lora:...> out of the prompt"},
    {"firstpass_image", R"([""])"},
    {"infotext", R"([""])", "send its settings as fields"},
    {"latent_mask", R"([""])", "send it as mask"},
    {"mask_round", "[true, 1]"},
};

constexpr Absent kAbsentOfEnlarging[] = {
    {"gfpgan_visibility", "[0]"},
    {"codeformer_visibility", "[0]"},
    {"extras_upscaler_2_visibility", "[0]", "one upscaler is used"},
};

constexpr Absent kAbsentOfHires[] = {
    {"firstphase_width", "[0]", "width is the first pass's, hr_resize_x the second one's"},
    {"firstphase_height", "[0]", "height is the first pass's, hr_resize_y the second one's"},
    {"hr_additional_modules", R"([[], ["Use same choices"]])", "one model is served"},
};

constexpr Absent kAbsentOfControls[] = {
    {"control_mode", R"([0, "Balanced", "ControlMode.BALANCED"])"},
    {"hr_option", R"([0, "Both", "HiResFixOption.BOTH"])"},
    {"mask", R"([""])"},
    {"mask_image", R"([""])"},
    {"effective_region_mask", R"([""])"},
    {"advanced_weighting", "[[]]"},
};

constexpr Absent kAbsentOptions[] = {
    {"sd_vae", R"(["", "Automatic", "None"])", "start with --vae FILE"},
    {"sd_hypernetwork", R"(["", "None"])"},
    {"sd_lora", R"(["", "None"])", "name it in the prompt or in loras"},
    {"sd_unet", R"(["", "None", "Automatic"])"},
    {"forge_additional_modules", "[[]]"},
    {"extra_networks_default_multiplier", "[1]"},
    {"token_merging_ratio", "[0]"},
    {"token_merging_ratio_img2img", "[0]"},
    {"token_merging_ratio_hr", "[0]"},
    {"s_min_uncond", "[0]"},
    {"s_min_uncond_all", "[false]"},
    {"skip_early_cond", "[0]"},
    {"pad_cond_uncond", "[false]"},
    {"pad_cond_uncond_v0", "[false]"},
    {"enable_quantization", "[false]"},
    {"comma_padding_backtrack", "[20]"},
    {"use_old_emphasis_implementation", "[false]"},
    {"use_old_karras_scheduler_sigmas", "[false]"},
    {"use_old_hires_fix_width_height", "[false]"},
    {"use_old_scheduling", "[false]"},
    {"use_downcasted_alpha_bar", "[false]"},
    {"hires_fix_use_firstpass_conds", "[false]"},
    {"no_dpmpp_sde_batch_determinism", "[false]"},
    {"always_discard_next_to_last_sigma", "[false]"},
    {"sgm_noise_multiplier", "[false]"},
    {"sd_noise_schedule", R"(["Default"])"},
    {"sigma_min", "[0]"},
    {"sigma_max", "[0]"},
    {"rho", "[0]"},
    {"beta_dist_alpha", "[0.6]"},
    {"beta_dist_beta", "[0.6]"},
    {"ddim_discretize", R"(["uniform"])"},
    {"uni_pc_variant", R"(["bh1"])"},
    {"uni_pc_skip_type", R"(["time_uniform"])"},
    {"uni_pc_order", "[3]"},
    {"uni_pc_lower_order_final", "[true]"},
    {"sdxl_crop_top", "[0]"},
    {"sdxl_crop_left", "[0]"},
    {"initial_noise_multiplier", "[1]"},
    {"img2img_extra_noise", "[0]"},
    {"img2img_color_correction", "[false]"},
    {"img2img_background_color", R"(["#ffffff"])"},
    {"inpainting_mask_weight", "[1]"},
    {"overlay_inpaint", "[true]"},
    {"upscaler_for_img2img", R"(["", "None", "Lanczos"])"},
    {"sd_vae_encode_method", R"(["Full"])"},
    {"sd_vae_decode_method", R"(["Full"])"},
    {"face_restoration", "[false]"},
    {"tiling", "[false]", "send it as a field of the body"},
    {"fp8_storage", R"(["Disable"])"},
    {"hypertile_enable_unet", "[false]"},
    {"hypertile_enable_unet_secondpass", "[false]"},
    {"hypertile_enable_vae", "[false]"},
    {"webp_lossless", "[false]"},
};

// Options that a request's override_settings may set; /sdapi/v1/options would have to keep them.
constexpr const char* kInRequests = "send it in override_settings of a request";
constexpr Absent kFixedOptions[] = {
    {"CLIP_stop_at_last_layers", "[0, 1]", kInRequests},
    {"eta_noise_seed_delta", "[0]", kInRequests},
    {"eta_ancestral", "[1]", kInRequests},
    {"eta_ddim", "[0]", kInRequests},
    {"s_churn", "[0]", kInRequests},
    {"s_tmin", "[0]", kInRequests},
    {"s_tmax", "[0]", kInRequests},
    {"s_noise", "[1]", kInRequests},
    {"k_sched_type", R"(["", "Automatic"])", kInRequests},
    {"randn_source", R"(["GPU", "NV"])", kInRequests},
    {"emphasis", R"(["Original"])", kInRequests},
    {"enable_emphasis", "[true]", kInRequests},
    {"enable_prompt_comments", "[true]", kInRequests},
    {"img2img_fix_steps", "[false]", kInRequests},
    {"samples_format", R"(["png"])", kInRequests},
};

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

// AUTOMATIC1111's own scripts; they do nothing while they are switched off.
constexpr const char* kScriptsOfA1111[] = {"comments", "extra options", "hypertile",      "refiner",
                                           "sampler",  "seed",          "soft inpainting"};

// The options whose value is a number or a boolean.
std::vector<LaxField> lax_fields(std::span<const Absent> options) {
  std::vector<LaxField> out;
  for (const Absent& each : options) {
    const json value = json::parse(each.without).front();
    if (value.is_boolean()) out.push_back({each.name, LaxKind::truth});
    if (value.is_number()) out.push_back({each.name, LaxKind::number});
  }
  return out;
}

// The options of override_settings and /sdapi/v1/options.
template <typename Object>
void read_options_laxly(Object& object) {
  read_laxly(object, lax_fields(kAbsentOptions));
  read_laxly(object, lax_fields(kFixedOptions));
  read_laxly(object, kLaxOptions);
}

// To ignore such a field would give another picture than the client requested.
void refuse_others(ObjectReader& reader, std::span<const Absent> absent) {
  for (const Absent& each : absent) {
    const json* value = reader.find(each.name);
    if (value == nullptr) continue;
    const json without = json::parse(each.without);
    if (std::ranges::find(without, *value) != without.end()) continue;
    const std::string list = without.dump();
    reader.note(each.name, cat("one_of(", list, ")"),
                cat("must be one of ", list, ": ", each.instead), value);
  }
}

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
  refuse_others(reader, kAbsentOfHires);
}

// strength: denoising_strength.
void read_hires_fields(ObjectReader& reader, std::optional<float> strength, ImageBody& out) {
  constexpr float kStrength = 0.75f;  // A1111's
  const bool enabled = flag(reader, "enable_hr").value_or(false);
  // 0 means absent, as in A1111.
  const auto side_of = [&](const char* name) {
    const json* value = reader.find(name);
    return value != nullptr && *value == 0 ? std::nullopt : side(reader, name);
  };
  SentHires hires{.scale = reader.number("hr_scale", kHiresScale),
                  .width = side_of("hr_resize_x"),
                  .height = side_of("hr_resize_y"),
                  .steps = reader.integer("hr_second_pass_steps", {0, kSteps.high}),
                  .strength = strength.value_or(kStrength),
                  .upscaler = reader.text("hr_upscaler").value_or("")};
  if (!enabled) return;
  refuse_other_hires(reader);
  const std::string checkpoint = reader.text("hr_checkpoint_name").value_or("");
  if (checkpoint != "Use same checkpoint") out.hires_checkpoint = checkpoint;
  out.hires = std::move(hires);
}

// AUTOMATIC1111's defaults differ from ours.
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
  if (!out.mask_image.empty() && out.mask_blur != down.value_or(kBlurred)) {
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
std::string unit_fit(ObjectReader& unit) {
  struct Name {
    std::string_view name;
    const char* fit;
  };
  constexpr Name kNames[] = {
      {"just resize", "stretch"},           {"resizemode.resize", "stretch"},
      {"crop and resize", "crop"},          {"resizemode.inner_fit", "crop"},
      {"scale to fit (inner fit)", "crop"}, {"inner fit (scale to fit)", "crop"},
      {"resize and fill", "fill"},          {"resizemode.outer_fit", "fill"},
      {"envelope (outer fit)", "fill"},     {"outer fit (shrink to fit)", "fill"}};
  const json* value = unit.find("resize_mode");
  if (value == nullptr) return "crop";
  if (!value->is_string()) {
    constexpr std::array<const char*, 3> kFits = {"stretch", "crop", "fill"};
    return kFits[static_cast<size_t>(unit.integer("resize_mode", {0, 2}).value_or(0))];
  }
  const auto found = std::ranges::find(kNames, lower(value->get<std::string>()), &Name::name);
  if (found != std::end(kNames)) return found->fit;
  constexpr const char* kAll = "Just Resize, Crop and Resize, Resize and Fill";
  unit.note("resize_mode", cat("one_of(", kAll, ")"), cat("must be one of ", kAll), value);
  return {};
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
      refuse_others(unit, kAbsentOfControls);
      const bool has_init = !out.init_image.empty();
      SentControl sent = has_init ? control(unit) : control_with_image(unit);
      sent.fit = unit_fit(unit);
      if (sent.image.empty() && has_init) {
        sent.image = out.init_image;
        sent.fit = out.fit;
      }
      out.controls.push_back(std::move(sent));
    };
    each_object(fields, "args", kMaxControls, errors, read_unit, kPrefix);
  }
}

// In A1111, DDIM samplers read another option than all others.
void read_eta(ObjectReader& reader, ImageBody& out) {
  const auto ancestral = reader.number("eta_ancestral", kUnit);
  const auto ddim = reader.number("eta_ddim", kUnit);
  const bool is_ddim = lower(out.sampler).find("ddim") != std::string::npos;
  if (!out.eta) out.eta = is_ddim ? ddim : ancestral;
}

void read_file_options(ObjectReader& reader, ImageBody& out) {
  const std::string format = choice(reader, "samples_format", {"png", "jpg", "jpeg", "webp"});
  if (!format.empty()) out.output_format = format == "jpg" ? "jpeg" : format;
  constexpr int32_t kCustomary = 80;
  const auto quality = reader.integer("jpeg_quality", kQuality);  // of webp too
  if (quality || !out.output_compression) out.output_compression = quality.value_or(kCustomary);
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
  const auto skip = clip_skip(reader, "CLIP_stop_at_last_layers");
  if (skip) out.clip_skip = skip;
  read_noise(reader, out);
  read_eta(reader, out);
  read_file_options(reader, out);
  out.checkpoint = reader.text("sd_model_checkpoint").value_or("");
  if (out.schedule.empty()) out.schedule = reader.text("k_sched_type").value_or("");
  const std::string source = choice(reader, "randn_source", {"GPU", "CPU", "NV"});
  if (out.noise_source.empty() && !source.empty()) {
    out.noise_source = source == "CPU" ? "torch" : "philox";
  }
  const std::string emphasis =
      choice(reader, "emphasis", {"Original", "No norm", "Ignore", "None"});
  if (emphasis != "None") out.emphasis = emphasis;
  const bool plain = emphasis == "None" || !reader.boolean("enable_emphasis").value_or(true);
  if (out.prompt_rule.empty() && plain) out.prompt_rule = "none";
  const bool all = reader.boolean("img2img_fix_steps").value_or(false);
  if (out.strength_rule.empty() && all) out.strength_rule = "all";
  if (flag(reader, "enable_prompt_comments").value_or(true)) {
    out.prompt = without_comments(out.prompt);
    out.negative_prompt = without_comments(out.negative_prompt);
  }
  refuse_others(reader, kAbsentOptions);
}

}  // namespace

std::string parse_sdapi_options(std::string_view text) {
  JsonBody body(text);
  read_options_laxly(body);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  refuse_others(reader, kAbsentOptions);
  refuse_others(reader, kFixedOptions);
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
  refuse_others(reader, kAbsentOfEnlarging);
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
  out.send_images = flag(reader, "send_images").value_or(true);
  out.distilled_guidance = reader.number("distilled_cfg_scale", kGuidance);
  out.task = task(reader, "force_task_id");
  refuse_others(reader, kAbsent);
  if (img2img) read_init_images(reader, out);
  read_scripts(reader, errors, out);
  read_overrides(reader, errors, out);
  if (out.noise_source.empty()) out.noise_source = "philox";
  if (out.strength_rule.empty()) out.strength_rule = "a1111";
  if (img2img) {
    if (!out.strength) out.strength = 0.75f;
  } else {
    read_hires_fields(reader, std::exchange(out.strength, std::nullopt), out);
  }
  finish(errors);
  if (img2img) body["init_images"] = body["mask"] = nullptr;
  out.request = body.object().dump();  // the fields that were read
  return out;
}

}  // namespace rbee::server
