#include "rbee/diffusion/scheduler_fields.h"

#include <algorithm>
#include <span>

namespace rbee::diffusion {
namespace {

using std::string_view;
using Fields = std::span<const ClassField>;

constexpr ClassField kTraining[] = {{"num_train_timesteps", "1000"},
                                    {"beta_start", "0.0001"},
                                    {"beta_end", "0.02"},
                                    {"beta_schedule", R"("linear")"},
                                    {"trained_betas", "null"},
                                    {"prediction_type", R"("epsilon")"},
                                    {"timestep_spacing", R"("linspace")"},
                                    {"steps_offset", "0"}};
constexpr ClassField kSigmas[] = {{"use_karras_sigmas", "false"},
                                  {"use_exponential_sigmas", "false"},
                                  {"use_beta_sigmas", "false"}};

// Of each class what the lists above lack or say otherwise.
constexpr ClassField kEuler[] = {{"interpolation_type", R"("linear")"},
                                 {"sigma_min", "null"},
                                 {"sigma_max", "null"},
                                 {"timestep_type", R"("discrete")"},
                                 {"final_sigmas_type", R"("zero")"},
                                 {"rescale_betas_zero_snr", "false"}};
constexpr ClassField kEulerA[] = {{"rescale_betas_zero_snr", "false"}};
constexpr ClassField kKDiffusion[] = {{"beta_start", "0.00085"}, {"beta_end", "0.012"}};
constexpr ClassField kHeun[] = {
    {"beta_start", "0.00085"}, {"beta_end", "0.012"}, {"clip_sample", "false"}};
constexpr ClassField kDdim[] = {{"timestep_spacing", R"("leading")"},
                                {"clip_sample", "true"},
                                {"set_alpha_to_one", "true"},
                                {"thresholding", "false"},
                                {"rescale_betas_zero_snr", "false"}};
constexpr ClassField kDdpm[] = {{"timestep_spacing", R"("leading")"},
                                {"clip_sample", "true"},
                                {"variance_type", R"("fixed_small")"},
                                {"thresholding", "false"},
                                {"rescale_betas_zero_snr", "false"}};
constexpr ClassField kPndm[] = {{"timestep_spacing", R"("leading")"},
                                {"skip_prk_steps", "false"},
                                {"set_alpha_to_one", "false"}};
constexpr ClassField kConsistency[] = {
    {"beta_start", "0.00085"},
    {"beta_end", "0.012"},
    {"beta_schedule", R"("scaled_linear")"},
    {"timestep_spacing", R"("leading")"},
    {"original_inference_steps", "50"},
    {"clip_sample", "false"},
    {"set_alpha_to_one", "true"},
    {"thresholding", "false"},
    {"timestep_scaling", "10.0"},
    {"rescale_betas_zero_snr", "false"},
};
constexpr ClassField kDpmSolver[] = {
    {"solver_order", "2"},
    {"thresholding", "false"},
    {"algorithm_type", R"("dpmsolver++")"},
    {"solver_type", R"("midpoint")"},
    {"lower_order_final", "true"},
    {"euler_at_final", "false"},
    {"use_lu_lambdas", "false"},
    {"use_flow_sigmas", "false"},
    {"flow_shift", "1.0"},
    {"final_sigmas_type", R"("zero")"},
    {"variance_type", "null"},
    {"rescale_betas_zero_snr", "false"},
    {"time_shift_type", R"("exponential")"},
    {"lambda_min_clipped", "null"},
    {"use_dynamic_shifting", "false"},
};
constexpr ClassField kDeis[] = {
    {"solver_order", "2"},
    {"thresholding", "false"},
    {"algorithm_type", R"("deis")"},
    {"solver_type", R"("logrho")"},
    {"lower_order_final", "true"},
    {"use_flow_sigmas", "false"},
    {"flow_shift", "1.0"},
    {"time_shift_type", R"("exponential")"},
    {"use_dynamic_shifting", "false"},
};
constexpr ClassField kUniPc[] = {
    {"solver_order", "2"},
    {"thresholding", "false"},
    {"predict_x0", "true"},
    {"solver_type", R"("bh2")"},
    {"lower_order_final", "true"},
    {"disable_corrector", "[]"},
    {"solver_p", "null"},
    {"use_flow_sigmas", "false"},
    {"flow_shift", "1.0"},
    {"final_sigmas_type", R"("zero")"},
    {"time_shift_type", R"("exponential")"},
    {"rescale_betas_zero_snr", "false"},
    {"sigma_min", "null"},
    {"sigma_max", "null"},
    {"shift_terminal", "null"},
    {"use_dynamic_shifting", "false"},
};

constexpr ClassField kFlow[] = {{"num_train_timesteps", "1000"}, {"shift", "1.0"}};
constexpr ClassField kShifted[] = {{"use_dynamic_shifting", "false"},
                                   {"base_shift", "0.5"},
                                   {"max_shift", "1.15"},
                                   {"base_image_seq_len", "256"},
                                   {"max_image_seq_len", "4096"},
                                   {"invert_sigmas", "false"},
                                   {"shift_terminal", "null"},
                                   {"time_shift_type", R"("exponential")"}};
constexpr ClassField kFlowEuler[] = {
    {"use_dynamic_shifting", "false"},
    {"base_shift", "0.5"},
    {"max_shift", "1.15"},
    {"base_image_seq_len", "256"},
    {"max_image_seq_len", "4096"},
    {"invert_sigmas", "false"},
    {"shift_terminal", "null"},
    {"time_shift_type", R"("exponential")"},
    {"stochastic_sampling", "false"},
};

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
    {"KDPM2DiscreteScheduler", kTraining, kKDiffusion, true},
    {"KDPM2AncestralDiscreteScheduler", kTraining, kKDiffusion, true},
    {"DPMSolverSDEScheduler", kTraining, kKDiffusion, true},
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

std::optional<std::vector<ClassField>> fields_of(string_view class_name) {
  const auto found = std::ranges::find(kClasses, class_name, &ClassFields::class_name);
  if (found == std::end(kClasses)) return std::nullopt;
  std::vector<ClassField> out(found->own.begin(), found->own.end());
  const auto add = [&](Fields fields) {
    for (const ClassField& field : fields) {
      if (std::ranges::count(out, field.name, &ClassField::name) == 0) out.push_back(field);
    }
  };
  add(found->shared);
  if (found->sigma_schedules) add(kSigmas);
  return out;
}

std::optional<bool> has_field(string_view class_name, string_view field) {
  const auto fields = fields_of(class_name);
  if (!fields) return std::nullopt;
  return std::ranges::count(*fields, field, &ClassField::name) > 0;
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
