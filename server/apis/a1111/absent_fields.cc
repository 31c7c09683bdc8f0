#include "server/apis/a1111/absent_fields.h"

#include <algorithm>

#include "rbee/core/cat.h"

namespace rbee::server {
namespace {

using nlohmann::json;

constexpr AbsentField kAbsent[] = {
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

constexpr AbsentField kAbsentOfImg2img[] = {
    {"enable_hr", "[false, 0]", "a second pass is for /sdapi/v1/txt2img"},
};

constexpr AbsentField kAbsentOfEnlarging[] = {
    {"gfpgan_visibility", "[0]"},
    {"codeformer_visibility", "[0]"},
    {"extras_upscaler_2_visibility", "[0]", "one upscaler is used"},
};

constexpr AbsentField kAbsentOfHires[] = {
    {"firstphase_width", "[0]", "width is the first pass's, hr_resize_x the second one's"},
    {"firstphase_height", "[0]", "height is the first pass's, hr_resize_y the second one's"},
    {"hr_additional_modules", R"([[], ["Use same choices"]])", "one model is served"},
};

constexpr AbsentField kAbsentOfControls[] = {
    {"control_mode", R"([0, "Balanced", "ControlMode.BALANCED"])"},
    {"hr_option", R"([0, "Both", "HiResFixOption.BOTH"])"},
    {"mask", R"([""])"},
    {"mask_image", R"([""])"},
    {"effective_region_mask", R"([""])"},
    {"advanced_weighting", "[[]]"},
};

constexpr AbsentField kAbsentOptions[] = {
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

constexpr const char* kInRequests = "send it in override_settings of a request";
constexpr AbsentField kFixedOptions[] = {
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

}  // namespace

std::span<const AbsentField> absent_fields() {
  return kAbsent;
}

std::span<const AbsentField> absent_of_img2img() {
  return kAbsentOfImg2img;
}

std::span<const AbsentField> absent_of_enlarging() {
  return kAbsentOfEnlarging;
}

std::span<const AbsentField> absent_of_hires() {
  return kAbsentOfHires;
}

std::span<const AbsentField> absent_of_controls() {
  return kAbsentOfControls;
}

std::span<const AbsentField> absent_options() {
  return kAbsentOptions;
}

std::span<const AbsentField> fixed_options() {
  return kFixedOptions;
}

std::vector<LaxField> lax_fields(std::span<const AbsentField> options) {
  std::vector<LaxField> out;
  for (const AbsentField& each : options) {
    const json value = json::parse(each.without).front();
    if (value.is_boolean()) out.push_back({each.name, LaxKind::truth});
    if (value.is_number()) out.push_back({each.name, LaxKind::number});
  }
  return out;
}

void refuse_absent(ObjectReader& reader, std::span<const AbsentField> absent) {
  for (const AbsentField& each : absent) {
    const json* value = reader.find(each.name);
    if (value == nullptr) continue;
    const json without = json::parse(each.without);
    if (std::ranges::find(without, *value) != without.end()) continue;
    const std::string list = without.dump();
    reader.note(each.name, cat("one_of(", list, ")"),
                cat("must be one of ", list, ": ", each.instead), value);
  }
}

}  // namespace rbee::server
