#include "rbee/diffusion/names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "rbee/core/error.h"

namespace rbee::diffusion {
namespace {

using std::string_view;

// Each also with "k_", "sample_" or "flax" before it and "_gpu" behind it, and diffusers' classes
// without "Scheduler".
constexpr string_view kEuler[] = {"EulerDiscreteScheduler", "FlowMatchEulerDiscreteScheduler",
                                  "flow_euler"};
constexpr string_view kEulerA[] = {"euler_ancestral", "EulerAncestralDiscreteScheduler"};
constexpr string_view kHeun[] = {"HeunDiscreteScheduler", "FlowMatchHeunDiscreteScheduler",
                                 "flow_heun"};
constexpr string_view kDpm2[] = {"KDPM2DiscreteScheduler"};
constexpr string_view kDpm2A[] = {"dpm2_ancestral", "KDPM2AncestralDiscreteScheduler"};
constexpr string_view k2SA[] = {"dpmpp_2s_ancestral", "dpmpp_2_a"};  // InvokeAI 2 the last
constexpr string_view k2M[] = {"DPMSolverMultistepScheduler", "dpm_solver_multistep", "dpm++",
                               "dpm_solver++", "dpmpp_2"};
constexpr string_view k2MSde[] = {"sde-dpmsolver++"};
constexpr string_view kSde[] = {"DPMSolverSDEScheduler"};
constexpr string_view kLms[] = {"LMSDiscreteScheduler"};
constexpr string_view kDdim[] = {"DDIMScheduler", "DDIMParallelScheduler", "ddim_v3"};
constexpr string_view kDdpm[] = {"DDPMScheduler", "DDPMParallelScheduler"};
constexpr string_view kPlms[] = {"PNDM", "PNDMScheduler"};
constexpr string_view kUniPc[] = {"uni_pc_bh1", "uni_pc_bh2", "UniPCMultistepScheduler"};
constexpr string_view kLcm[] = {"LCMScheduler", "FlowMatchLCMScheduler"};
constexpr string_view kTcd[] = {"TCDScheduler"};
constexpr string_view kEulerAPp[] = {"euler_ancestral_cfg_pp"};
constexpr string_view kDeis[] = {"DEISMultistepScheduler", "deis_multistep"};
constexpr string_view kAdaptive[] = {"dpm_ad"};
constexpr string_view kHeunPp[] = {"Heun++"};
constexpr string_view kResA[] = {"res_multistep_ancestral"};
constexpr string_view k2SAPp[] = {"dpmpp_2s_ancestral_cfg_pp"};
constexpr string_view kResAPp[] = {"res_multistep_ancestral_cfg_pp"};

constexpr auto kSamplers = std::to_array<SamplerName>({
    {Sampler::euler, "Euler", kEuler},
    {Sampler::euler_ancestral, "Euler a", kEulerA},
    {Sampler::heun, "Heun", kHeun},
    {Sampler::dpm2, "DPM2", kDpm2},
    {Sampler::dpm2_ancestral, "DPM2 a", kDpm2A},
    {Sampler::dpmpp_2s_ancestral, "DPM++ 2S a", k2SA},
    {Sampler::dpmpp_2m, "DPM++ 2M", k2M},
    {Sampler::dpmpp_2m_sde, "DPM++ 2M SDE", k2MSde},
    {Sampler::dpmpp_2m_sde_heun, "DPM++ 2M SDE Heun", {}},
    {Sampler::dpmpp_3m_sde, "DPM++ 3M SDE", {}},
    {Sampler::dpmpp_sde, "DPM++ SDE", kSde},
    {Sampler::lms, "LMS", kLms},
    {Sampler::ddim, "DDIM", kDdim},
    {Sampler::ddpm, "DDPM", kDdpm},
    {Sampler::plms, "PLMS", kPlms},
    {Sampler::unipc, "UniPC", kUniPc},
    {Sampler::lcm, "LCM", kLcm},
    {Sampler::tcd, "TCD", kTcd},
    {Sampler::euler_cfg_pp, "Euler CFG++", {}},
    {Sampler::euler_ancestral_cfg_pp, "Euler a CFG++", kEulerAPp},
    {Sampler::ddim_cfg_pp, "DDIM CFG++", {}},
    {Sampler::restart, "Restart", {}},
    {Sampler::deis, "DEIS", kDeis},
    {Sampler::dpm_fast, "DPM fast", {}},
    {Sampler::dpm_adaptive, "DPM adaptive", kAdaptive},
    {Sampler::ipndm, "IPNDM", {}},
    {Sampler::ipndm_v, "IPNDM_V", {}},
    {Sampler::res_multistep, "Res Multistep", {}},
    {Sampler::gradient_estimation, "Gradient Estimation", {}},
    {Sampler::heunpp2, "Heun++ 2", kHeunPp},
    {Sampler::seeds_2, "SEEDS 2", {}},
    {Sampler::seeds_3, "SEEDS 3", {}},
    {Sampler::exp_heun_2_x0, "Exp Heun 2 x0", {}},
    {Sampler::exp_heun_2_x0_sde, "Exp Heun 2 x0 SDE", {}},
    {Sampler::er_sde, "ER SDE", {}},
    {Sampler::sa_solver, "SA Solver", {}},
    {Sampler::sa_solver_pece, "SA Solver PECE", {}},
    {Sampler::res_multistep_ancestral, "Res Multistep a", kResA},
    {Sampler::dpmpp_2m_cfg_pp, "DPM++ 2M CFG++", {}},
    {Sampler::dpmpp_2s_ancestral_cfg_pp, "DPM++ 2S a CFG++", k2SAPp},
    {Sampler::res_multistep_cfg_pp, "Res Multistep CFG++", {}},
    {Sampler::res_multistep_ancestral_cfg_pp, "Res Multistep a CFG++", kResAPp},
    {Sampler::gradient_estimation_cfg_pp, "Gradient Estimation CFG++", {}},
});

constexpr string_view kAutomatic[] = {"default", "auto"};
constexpr string_view kNormal[] = {"Uniform", "discrete"};
constexpr string_view kKarras[] = {"ka", "k"};  // after samplers' names
constexpr string_view kExponential[] = {"exp"};
constexpr string_view kSgm[] = {"SGM"};
constexpr string_view kDdimUniform[] = {"DDIM"};
constexpr string_view kAys[] = {"ays"};

constexpr auto kSchedules = std::to_array<ScheduleName>({
    {Schedule::automatic, "Automatic", kAutomatic},
    {Schedule::normal, "Normal", kNormal},
    {Schedule::karras, "Karras", kKarras},
    {Schedule::exponential, "Exponential", kExponential},
    {Schedule::polyexponential, "Polyexponential", {}},
    {Schedule::sgm_uniform, "SGM Uniform", kSgm},
    {Schedule::simple, "Simple", {}},
    {Schedule::ddim_uniform, "DDIM Uniform", kDdimUniform},
    {Schedule::beta, "Beta", {}},
    {Schedule::beta_timesteps, "Beta Timesteps", {}},
    {Schedule::kl_optimal, "KL Optimal", {}},
    {Schedule::linear_quadratic, "Linear Quadratic", {}},
    {Schedule::align_your_steps, "Align Your Steps", kAys},
    {Schedule::linspace, "Linspace", {}},
    {Schedule::leading, "Leading", {}},
    {Schedule::trailing, "Trailing", {}},
});

// "DPM++ 2M SDE" and "dpmpp_2m_sde" alike become "dpmpp2msde".
std::string folded(string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ' ' || c == '_' || c == '-') continue;
    if (c == '+') {
      out += 'p';
    } else {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

template <typename Entry>
const Entry* find(std::span<const Entry> entries, const std::string& key) {
  for (const Entry& entry : entries) {
    if (folded(entry.name) == key) return &entry;
    for (const string_view alias : entry.aliases) {
      if (folded(alias) == key) return &entry;
    }
  }
  return nullptr;
}

template <typename Entry>
std::string listed(std::span<const Entry> entries) {
  std::string out;
  for (const Entry& entry : entries) {
    if (!out.empty()) out += ", ";
    out += entry.name;
  }
  return out;
}

// By the name itself or the forms of it that k-diffusion, ComfyUI and diffusers write.
const SamplerName* find_sampler(std::string key) {
  constexpr string_view kFlax = "flax", kClass = "scheduler";
  if (key.starts_with(kFlax)) key.erase(0, kFlax.size());
  if (const auto* found = find(sampler_names(), key)) return found;
  if (const auto* found = find(sampler_names(), cat(key, kClass))) return found;
  constexpr string_view kGpu = "gpu";
  if (key.ends_with(kGpu)) key.resize(key.size() - kGpu.size());
  for (const string_view start : {"sample", "k"}) {
    if (key.starts_with(start)) key.erase(0, start.size());
  }
  return find(sampler_names(), key);
}

// "dpmpp2mkarras" is the sampler "dpmpp2m" and the schedule "karras".
std::optional<SamplerChoice> split_combined(const std::string& key) {
  for (const ScheduleName& schedule : kSchedules) {
    std::vector<string_view> endings{schedule.name};
    endings.insert(endings.end(), schedule.aliases.begin(), schedule.aliases.end());
    for (const string_view each : endings) {
      const std::string ending = folded(each);
      if (!key.ends_with(ending)) continue;
      const auto* found = find_sampler(key.substr(0, key.size() - ending.size()));
      if (found != nullptr) return SamplerChoice{found->sampler, schedule.schedule};
    }
  }
  return std::nullopt;
}

}  // namespace

std::span<const SamplerName> sampler_names() {
  return kSamplers;
}

std::span<const ScheduleName> schedule_names() {
  return kSchedules;
}

string_view name(Sampler sampler) {
  return kSamplers[static_cast<size_t>(sampler)].name;
}

string_view name(Schedule schedule) {
  return kSchedules[static_cast<size_t>(schedule)].name;
}

SamplerChoice parse_sampler(string_view text) {
  const std::string key = folded(text);
  if (const auto* found = find_sampler(key)) return {found->sampler, std::nullopt};
  if (const auto combined = split_combined(key)) return *combined;
  fail(Code::invalid_argument, "sampler", "\"", text, "\" is none of ", listed(sampler_names()));
}

Schedule parse_schedule(string_view text) {
  if (const auto* found = find(schedule_names(), folded(text))) return found->schedule;
  fail(Code::invalid_argument, "schedule", "\"", text, "\" is none of ", listed(schedule_names()));
}

Schedule customary_schedule(Sampler sampler) {
  switch (sampler) {
    case Sampler::dpm2:
    case Sampler::dpm2_ancestral:
    case Sampler::dpmpp_2s_ancestral:
    case Sampler::dpmpp_2m:
    case Sampler::dpmpp_sde:
    case Sampler::restart:
      return Schedule::karras;
    case Sampler::dpmpp_2m_sde:
    case Sampler::dpmpp_2m_sde_heun:
    case Sampler::dpmpp_3m_sde:
      return Schedule::exponential;
    case Sampler::ddim:
    case Sampler::ddim_cfg_pp:
    case Sampler::plms:
    case Sampler::unipc:
      return Schedule::ddim_uniform;
    default:
      return Schedule::normal;
  }
}

}  // namespace rbee::diffusion
