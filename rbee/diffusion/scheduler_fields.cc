#include "rbee/diffusion/scheduler_fields.h"

#include <algorithm>
#include <span>

namespace rbee::diffusion {
namespace {

using std::string_view;
using Fields = std::span<const string_view>;

constexpr string_view kTraining[] = {"num_train_timesteps", "beta_start",    "beta_end",
                                     "beta_schedule",       "trained_betas", "prediction_type",
                                     "timestep_spacing",    "steps_offset"};
constexpr string_view kSigmas[] = {"use_karras_sigmas", "use_exponential_sigmas",
                                   "use_beta_sigmas"};

constexpr string_view kEuler[] = {"interpolation_type", "sigma_min",
                                  "sigma_max",          "timestep_type",
                                  "final_sigmas_type",  "rescale_betas_zero_snr"};
constexpr string_view kEulerA[] = {"rescale_betas_zero_snr"};
constexpr string_view kHeun[] = {"clip_sample"};
constexpr string_view kDdim[] = {"clip_sample", "set_alpha_to_one", "thresholding",
                                 "rescale_betas_zero_snr"};
constexpr string_view kDdpm[] = {"clip_sample", "variance_type", "thresholding",
                                 "rescale_betas_zero_snr"};
constexpr string_view kPndm[] = {"skip_prk_steps", "set_alpha_to_one"};
constexpr string_view kConsistency[] = {"original_inference_steps", "clip_sample",
                                        "set_alpha_to_one",         "thresholding",
                                        "timestep_scaling",         "rescale_betas_zero_snr"};
constexpr string_view kDpmSolver[] = {
    "solver_order",      "thresholding",       "algorithm_type",      "solver_type",
    "lower_order_final", "euler_at_final",     "use_lu_lambdas",      "use_flow_sigmas",
    "flow_shift",        "final_sigmas_type",  "variance_type",       "rescale_betas_zero_snr",
    "time_shift_type",   "lambda_min_clipped", "use_dynamic_shifting"};
constexpr string_view kDeis[] = {"solver_order", "thresholding",      "algorithm_type",
                                 "solver_type",  "lower_order_final", "use_flow_sigmas",
                                 "flow_shift",   "time_shift_type",   "use_dynamic_shifting"};
constexpr string_view kUniPc[] = {
    "solver_order",      "thresholding",      "predict_x0",      "solver_type",
    "lower_order_final", "disable_corrector", "solver_p",        "use_flow_sigmas",
    "flow_shift",        "final_sigmas_type", "time_shift_type", "rescale_betas_zero_snr",
    "sigma_min",         "sigma_max",         "shift_terminal",  "use_dynamic_shifting"};

constexpr string_view kFlow[] = {"num_train_timesteps", "shift"};
constexpr string_view kShifted[] = {"use_dynamic_shifting", "base_shift",        "max_shift",
                                    "base_image_seq_len",   "max_image_seq_len", "invert_sigmas",
                                    "shift_terminal",       "time_shift_type"};
constexpr string_view kFlowEuler[] = {
    "use_dynamic_shifting", "base_shift",        "max_shift",
    "base_image_seq_len",   "max_image_seq_len", "invert_sigmas",
    "shift_terminal",       "time_shift_type",   "stochastic_sampling"};

struct ClassFields {
  string_view class_name;
  Fields shared, own;
  bool sigma_schedules;
};

// The __init__ signatures of diffusers 0.42.1, which tools/goldens/make_scheduler_fields.py reads.
constexpr ClassFields kClasses[] = {
    {"EulerDiscreteScheduler", kTraining, kEuler, true},
    {"EulerAncestralDiscreteScheduler", kTraining, kEulerA, false},
    {"HeunDiscreteScheduler", kTraining, kHeun, true},
    {"KDPM2DiscreteScheduler", kTraining, {}, true},
    {"KDPM2AncestralDiscreteScheduler", kTraining, {}, true},
    {"DPMSolverSDEScheduler", kTraining, {}, true},
    {"LMSDiscreteScheduler", kTraining, {}, true},
    {"DDIMScheduler", kTraining, kDdim, false},
    {"DDIMParallelScheduler", kTraining, kDdim, false},
    {"DDPMScheduler", kTraining, kDdpm, false},
    {"DDPMParallelScheduler", kTraining, kDdpm, false},
    {"PNDMScheduler", kTraining, kPndm, false},
    {"LCMScheduler", kTraining, kConsistency, false},
    {"TCDScheduler", kTraining, kConsistency, false},
    {"DPMSolverMultistepScheduler", kTraining, kDpmSolver, true},
    {"DEISMultistepScheduler", kTraining, kDeis, true},
    {"UniPCMultistepScheduler", kTraining, kUniPc, true},
    {"FlowMatchEulerDiscreteScheduler", kFlow, kFlowEuler, true},
    {"FlowMatchHeunDiscreteScheduler", kFlow, {}, false},
    {"FlowMatchLCMScheduler", kFlow, kShifted, true},
};

}  // namespace

std::optional<bool> has_field(string_view class_name, string_view field) {
  const auto found = std::ranges::find(kClasses, class_name, &ClassFields::class_name);
  if (found == std::end(kClasses)) return std::nullopt;
  const auto in = [&](Fields fields) { return std::ranges::find(fields, field) != fields.end(); };
  return in(found->shared) || in(found->own) || (found->sigma_schedules && in(kSigmas));
}

bool has_sigma_schedules(Sampler sampler) {
  switch (sampler) {
    case Sampler::euler_ancestral:
    case Sampler::ddim:
    case Sampler::ddpm:
    case Sampler::plms:
    case Sampler::lcm:
    case Sampler::tcd:
      return false;
    default:
      return true;
  }
}

}  // namespace rbee::diffusion
