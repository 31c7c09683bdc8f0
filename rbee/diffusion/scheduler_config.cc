#include "rbee/diffusion/scheduler_config.h"

#include <algorithm>
#include <utility>

#include "rbee/core/error.h"
#include "rbee/diffusion/scheduler_fields.h"
#include "rbee/io/json_parse.h"

namespace rbee::diffusion {
namespace {

using nlohmann::json;

constexpr const char* kFile = "scheduler_config.json";
constexpr int32_t kMaxTrainSteps = 100000;
constexpr int64_t kMaxTokens = 1 << 20;

template <typename T>
T value_or(const json& config, const char* key, T fallback) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return fallback;
  try {
    return found->get<T>();
  } catch (const json::exception&) {
    fail(Code::invalid_argument, kFile, key, " has the wrong type");
  }
}

std::string class_of(const json& config) {
  return value_or<std::string>(config, "_class_name", "");
}

[[noreturn]] void fail_value(const char* key, const std::string& value) {
  fail(Code::unsupported, kFile, key, " \"", value, "\" is not implemented");
}

// Nothing: the class is not known.
std::optional<Sampler> sampler_of(const json& config) {
  const std::string named = class_of(config);
  for (const SamplerName& entry : sampler_names()) {
    for (const std::string_view alias : entry.aliases) {
      if (alias != named) continue;
      const bool sde = value_or<std::string>(config, "algorithm_type", "") == "sde-dpmsolver++";
      if (!sde || entry.sampler != Sampler::dpmpp_2m) return entry.sampler;
      const bool heun = value_or<std::string>(config, "solver_type", "") == "heun";
      return heun ? Sampler::dpmpp_2m_sde_heun : Sampler::dpmpp_2m_sde;
    }
  }
  return std::nullopt;
}

BetaCurve curve_of(const json& config) {
  const std::string named = value_or<std::string>(config, "beta_schedule", "linear");
  if (named == "linear") return BetaCurve::linear;
  if (named == "scaled_linear") return BetaCurve::scaled_linear;
  if (named == "squaredcos_cap_v2") return BetaCurve::squared_cosine;
  fail_value("beta_schedule", named);
}

Prediction prediction_of(const json& config) {
  const bool flow = class_of(config).starts_with("FlowMatch");
  const std::string named =
      value_or<std::string>(config, "prediction_type", flow ? "flow_prediction" : "epsilon");
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
json own_fields(const json& written) {
  const auto fields = fields_of(class_of(written));
  if (!fields) return written;
  json out = {{"_class_name", class_of(written)}};
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

std::optional<Schedule> sigma_schedule_of(const json& config) {
  if (value_or(config, "use_karras_sigmas", false)) return Schedule::karras;
  if (value_or(config, "use_exponential_sigmas", false)) return Schedule::exponential;
  if (value_or(config, "use_beta_sigmas", false)) return Schedule::beta;
  return std::nullopt;
}

FlowShift flow_of(const json& config) {
  const std::string type = value_or<std::string>(config, "time_shift_type", "exponential");
  if (type != "exponential") fail_value("time_shift_type", type);
  FlowShift flow;
  flow.shift = value_or(config, "shift", value_or(config, "flow_shift", flow.shift));
  flow.dynamic = value_or(config, "use_dynamic_shifting", false);
  flow.base_shift = value_or(config, "base_shift", flow.base_shift);
  flow.max_shift = value_or(config, "max_shift", flow.max_shift);
  flow.base_tokens = value_or(config, "base_image_seq_len", flow.base_tokens);
  flow.max_tokens = value_or(config, "max_image_seq_len", flow.max_tokens);
  check(flow.shift > 0, kFile, "shift ", flow.shift, " is not above 0");
  check(
      flow.base_tokens >= 0 && flow.base_tokens < flow.max_tokens && flow.max_tokens <= kMaxTokens,
      kFile, "base_image_seq_len ", flow.base_tokens, " and max_image_seq_len ", flow.max_tokens,
      " do not rise within 0 to ", kMaxTokens);
  return flow;
}

struct Computed {
  std::string_view key;
  std::vector<json> values;  // that are computed, diffusers' default among them
};

// Keys of diffusers' schedulers that change the picture and have a single value in our samplers.
std::vector<Computed> computed_by(const json& config, Sampler sampler) {
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
  out.push_back({"lambda_min_clipped", {nullptr}});  // -Infinity
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

std::vector<std::string> ignored_of(const json& config, Sampler sampler) {
  std::vector<std::string> out;
  for (const auto& [key, values] : computed_by(config, sampler)) {
    const auto found = config.find(key);
    if (found == config.end() || std::ranges::count(values, *found) > 0) continue;
    out.push_back(cat(key, " ", found->dump()));
  }
  return out;
}

}  // namespace

SchedulerConfig parse_scheduler_config(std::string_view text, const PipelineClasses& index) {
  json written = io::parse_json(text, kFile);
  check(written.is_object(), kFile, "it is no JSON object");
  if (!index.scheduler.empty()) written["_class_name"] = index.scheduler;
  json config = own_fields(written);
  mend_old_file(index.pipeline, config);
  SchedulerConfig out;
  const std::optional<Sampler> sampler = sampler_of(config);
  out.sampler = sampler.value_or(Sampler::euler);
  out.prediction = prediction_of(config);
  out.train_steps = value_or(config, "num_train_timesteps", 1000);
  check(out.train_steps >= 2 && out.train_steps <= kMaxTrainSteps, kFile, "num_train_timesteps ",
        out.train_steps, " is outside of 2 to ", kMaxTrainSteps);
  out.beta_start = value_or(config, "beta_start", 0.0001);
  out.beta_end = value_or(config, "beta_end", 0.02);
  check(out.beta_start > 0 && out.beta_start <= out.beta_end && out.beta_end < 1, kFile,
        "beta_start ", out.beta_start, " and beta_end ", out.beta_end,
        " do not rise within 0 to 1");
  out.beta_curve = curve_of(config);
  out.trained_betas = value_or(config, "trained_betas", std::vector<double>{});
  out.zero_terminal_snr = value_or(config, "rescale_betas_zero_snr", false);
  const auto spacing = value_or<std::string>(config, "timestep_spacing", "");
  if (!spacing.empty()) out.spacing = parse_schedule(spacing);
  out.steps_offset = value_or(config, "steps_offset", 0);
  check(out.steps_offset >= 0 && out.steps_offset <= out.train_steps, kFile, "steps_offset ",
        out.steps_offset, " is outside of 0 to ", out.train_steps);
  out.sigma_schedule = sigma_schedule_of(config);
  if (const auto found = config.find("set_alpha_to_one"); found != config.end()) {
    out.ends_at_alpha_one = value_or(config, "set_alpha_to_one", true);
  }
  out.consistency_steps = value_or(config, "original_inference_steps", 50);
  check(out.consistency_steps >= 1 && out.consistency_steps <= out.train_steps, kFile,
        "original_inference_steps ", out.consistency_steps, " is outside of 1 to ",
        out.train_steps);
  out.flow = flow_of(config);
  out.ignored = ignored_of(config, out.sampler);
  if (!sampler) {
    out.ignored.insert(out.ignored.begin(),
                       cat("_class_name ", config.value("_class_name", json()).dump()));
  }
  return out;
}

}  // namespace rbee::diffusion
