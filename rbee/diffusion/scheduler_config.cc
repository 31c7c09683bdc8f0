#include "rbee/diffusion/scheduler_config.h"

#include <algorithm>
#include <utility>

#include "rbee/core/error.h"
#include "rbee/diffusion/scheduler_fields.h"
#include "rbee/io/json_config.h"
#include "rbee/io/json_parse.h"

namespace rbee::diffusion {
namespace {

using io::JsonConfig;
using nlohmann::json;

constexpr const char* kFile = "scheduler_config.json";
constexpr io::IntegerRange kTrainSteps{2, 100000};
constexpr io::IntegerRange kTokens{0, 1 << 20};

std::string class_of(const JsonConfig& config) {
  return config.text_or("_class_name", "");
}

int32_t integer_or(const JsonConfig& config, const char* key, int32_t fallback,
                   io::IntegerRange range) {
  return static_cast<int32_t>(config.integer_or(key, fallback, range));
}

[[noreturn]] void fail_value(const char* key, const std::string& value) {
  fail(Code::unsupported, kFile, key, " \"", value, "\" is not implemented");
}

// Nothing: the class is not known.
std::optional<Sampler> sampler_of(const JsonConfig& config) {
  const std::string named = class_of(config);
  for (const SamplerName& entry : sampler_names()) {
    for (const std::string_view alias : entry.aliases) {
      if (alias != named) continue;
      const bool sde = config.text_or("algorithm_type", "") == "sde-dpmsolver++";
      if (!sde || entry.sampler != Sampler::dpmpp_2m) return entry.sampler;
      const bool heun = config.text_or("solver_type", "") == "heun";
      return heun ? Sampler::dpmpp_2m_sde_heun : Sampler::dpmpp_2m_sde;
    }
  }
  return std::nullopt;
}

BetaCurve curve_of(const JsonConfig& config) {
  const std::string named = config.text_or("beta_schedule", "linear");
  if (named == "linear") return BetaCurve::linear;
  if (named == "scaled_linear") return BetaCurve::scaled_linear;
  if (named == "squaredcos_cap_v2") return BetaCurve::squared_cosine;
  fail_value("beta_schedule", named);
}

Prediction prediction_of(const JsonConfig& config) {
  const bool flow = class_of(config).starts_with("FlowMatch");
  const std::string named = config.text_or("prediction_type", flow ? "flow_prediction" : "epsilon");
  if (named == "epsilon") return Prediction::epsilon;
  if (named == "v_prediction") return Prediction::v_prediction;
  if (named == "sample") return Prediction::sample;
  if (named == "flow_prediction") return Prediction::flow;
  fail_value("prediction_type", named);
}

// The sampler that is used decides about these: see has_sigma_schedules().
constexpr std::string_view kSigmaSchedules[] = {"use_karras_sigmas", "use_exponential_sigmas",
                                                "use_beta_sigmas"};

// diffusers hands what a file says of these on to a request's sampler, but no default.
constexpr std::string_view kOfSampler[] = {"timestep_spacing", "set_alpha_to_one"};

// The fields of the class alone, with its defaults of what the file does not say.
json own_fields(const json& written, const std::string& class_name) {
  const auto fields = fields_of(class_name);
  if (!fields) return written;
  json out = {{"_class_name", class_name}};
  for (const std::string_view key : kSigmaSchedules) {
    if (written.contains(key)) out[key] = written[key];
  }
  for (const auto& [name, value] : *fields) {
    const auto found = written.find(name);
    if (found != written.end() && !found->is_null()) {
      out[name] = *found;
    } else if (std::ranges::count(kOfSampler, name) == 0) {
      out[name] = json::parse(value);
    }
  }
  return out;
}

// What the constructors of diffusers' pipelines put in place of an old file's settings.
void mend_old_file(std::string_view pipeline, json& config) {
  const bool inpaint = pipeline == "StableDiffusionInpaintPipeline";
  const bool picture = pipeline == "StableDiffusionPipeline" ||
                       pipeline == "StableDiffusionImg2ImgPipeline" ||
                       pipeline == "StableDiffusionPipelineSafe";
  const auto replace = [&](const char* key, const json& value) {
    if (config.contains(key)) config[key] = value;
  };
  if (inpaint || picture) replace("steps_offset", 1);
  if (inpaint) replace("skip_prk_steps", true);
  if (picture) replace("clip_sample", false);
}

std::optional<Schedule> sigma_schedule_of(const JsonConfig& config) {
  if (config.flag_or("use_karras_sigmas", false)) return Schedule::karras;
  if (config.flag_or("use_exponential_sigmas", false)) return Schedule::exponential;
  if (config.flag_or("use_beta_sigmas", false)) return Schedule::beta;
  return std::nullopt;
}

FlowShift flow_of(const JsonConfig& config) {
  const std::string type = config.text_or("time_shift_type", "exponential");
  if (type != "exponential") fail_value("time_shift_type", type);
  FlowShift flow;
  flow.shift = config.number_or("shift", config.number_or("flow_shift", flow.shift, io::kAboveZero),
                                io::kAboveZero);
  flow.dynamic = config.flag_or("use_dynamic_shifting", false);
  flow.base_shift = config.number_or("base_shift", flow.base_shift);
  flow.max_shift = config.number_or("max_shift", flow.max_shift);
  flow.base_tokens = config.integer_or("base_image_seq_len", flow.base_tokens, kTokens);
  flow.max_tokens = config.integer_or("max_image_seq_len", flow.max_tokens, kTokens);
  check(flow.base_tokens < flow.max_tokens, kFile, "base_image_seq_len ", flow.base_tokens,
        " and max_image_seq_len ", flow.max_tokens, " do not rise");
  return flow;
}

struct Computed {
  std::string_view key;
  std::vector<json> values;  // that are computed, diffusers' default among them
};

// Keys of diffusers' schedulers that change the picture and have a single value in our samplers.
std::vector<Computed> computed_by(const JsonConfig& config, Sampler sampler) {
  using enum Sampler;
  std::vector<Computed> out = {
      {"thresholding", {false}},
      {"use_lu_lambdas", {false}},
      {"variance_type", {nullptr, "fixed_small", "fixed_small_log"}},
      {"timestep_type", {"discrete"}},
      {"interpolation_type", {"linear"}},
      {"stochastic_sampling", {false}},
      {"invert_sigmas", {false}},
      {"shift_terminal", {nullptr}},
  };
  // Of a class that is not known, which Euler or PLMS replaces, all fields are here.
  if (sampler != euler && sampler != plms) out.push_back({"clip_sample", {false}});
  if (sampler == plms) out.push_back({"skip_prk_steps", {true}});
  if (sampler == euler) out.push_back({"final_sigmas_type", {"zero"}});
  if (sigma_schedule_of(config) && has_sigma_schedules(sampler)) {
    out.push_back({"sigma_min", {nullptr}});
    out.push_back({"sigma_max", {nullptr}});
  }
  const bool flow = prediction_of(config) == Prediction::flow;
  const auto named = class_of(config);
  for (const std::string_view key : kSigmaSchedules) {
    if (flow && has_field(named, key).value_or(false)) out.push_back({key, {false}});
  }
  if (sampler == lcm) out.push_back({"timestep_scaling", {10}});
  const bool multistep = sampler == dpmpp_2m || sampler == dpmpp_2m_sde ||
                         sampler == dpmpp_2m_sde_heun || sampler == deis || sampler == unipc;
  if (!multistep) return out;
  out.push_back({"final_sigmas_type", {"zero"}});
  out.push_back({"lower_order_final", {true}});
  out.push_back({"use_flow_sigmas", {false}});
  out.push_back({"lambda_min_clipped", {nullptr, "-Infinity"}});
  out.push_back({"solver_order", {2}});
  if (sampler == unipc) {
    out.push_back({"solver_type", {"bh2"}});
    out.push_back({"predict_x0", {true}});
    out.push_back({"disable_corrector", {json::array()}});
    out.push_back({"solver_p", {nullptr}});
    return out;
  }
  out.push_back({"euler_at_final", {false}});
  if (sampler == deis) {
    out.push_back({"algorithm_type", {"deis"}});
    out.push_back({"solver_type", {"logrho"}});
    return out;
  }
  out.push_back({"algorithm_type", {"dpmsolver++", "sde-dpmsolver++"}});
  const char* solver = sampler == dpmpp_2m_sde_heun ? "heun" : "midpoint";
  out.push_back({"solver_type", {solver}});
  return out;
}

std::vector<std::string> ignored_of(const json& fields, const std::vector<Computed>& computed) {
  std::vector<std::string> out;
  for (const auto& [key, values] : computed) {
    const auto found = fields.find(key);
    if (found == fields.end() || std::ranges::count(values, *found) > 0) continue;
    out.push_back(cat(key, " ", found->dump()));
  }
  return out;
}

}  // namespace

SchedulerConfig parse_scheduler_config(std::string_view text, const PipelineClasses& index) {
  json written = io::parse_json(text, kFile);
  check(written.is_object(), kFile, "it is no JSON object");
  if (!index.scheduler.empty()) written["_class_name"] = index.scheduler;
  json fields = own_fields(written, class_of(JsonConfig(written.dump(), kFile)));
  mend_old_file(index.pipeline, fields);
  const JsonConfig config(fields.dump(), kFile);
  SchedulerConfig out;
  const std::optional<Sampler> sampler = sampler_of(config);
  out.sampler = sampler.value_or(Sampler::euler);
  out.prediction = prediction_of(config);
  out.train_steps = integer_or(config, "num_train_timesteps", 1000, kTrainSteps);
  out.beta_start = config.number_or("beta_start", 0.0001);
  out.beta_end = config.number_or("beta_end", 0.02);
  check(out.beta_start > 0 && out.beta_start <= out.beta_end && out.beta_end < 1, kFile,
        "beta_start ", out.beta_start, " and beta_end ", out.beta_end,
        " do not rise within 0 to 1");
  out.beta_curve = curve_of(config);
  out.trained_betas = config.numbers("trained_betas", io::kZeroToOne);
  out.zero_terminal_snr = config.flag_or("rescale_betas_zero_snr", false);
  const auto spacing = config.text_or("timestep_spacing", "");
  if (!spacing.empty()) out.spacing = parse_schedule(spacing);
  out.steps_offset = integer_or(config, "steps_offset", 0, {0, out.train_steps});
  out.sigma_schedule = sigma_schedule_of(config);
  if (config.has("set_alpha_to_one")) {
    out.ends_at_alpha_one = config.flag_or("set_alpha_to_one", true);
  }
  // Of a class without the field this is what a request for LCM or TCD takes, as in diffusers.
  out.consistency_steps = integer_or(config, "original_inference_steps", 50, {1, out.train_steps});
  out.flow = flow_of(config);
  out.ignored = ignored_of(fields, computed_by(config, out.sampler));
  if (!sampler) {
    out.ignored.insert(out.ignored.begin(),
                       cat("_class_name ", fields.value("_class_name", json()).dump()));
  }
  return out;
}

}  // namespace rbee::diffusion
