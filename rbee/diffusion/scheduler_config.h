#pragma once
// A model's noise schedule in training and its authors' sampling settings: diffusers'
// scheduler/scheduler_config.json.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/diffusion/names.h"

namespace rbee::diffusion {

// What the model's output means: the noise, v = sqrt(a) noise - sqrt(1 - a) picture (Salimans and
// Ho 2022), the picture, or the velocity noise - picture of a straight flow (Lipman et al. 2022).
enum class Prediction : uint8_t { epsilon, v_prediction, sample, flow };
enum class BetaCurve : uint8_t { linear, scaled_linear, squared_cosine };

struct FlowShift {
  double shift = 1.0;    // t -> shift t / (1 + (shift - 1) t)
  bool dynamic = false;  // by the picture's size instead: exp(mu), mu linear in the tokens
  double base_shift = 0.5, max_shift = 1.15;
  int64_t base_tokens = 256, max_tokens = 4096;
  bool operator==(const FlowShift&) const = default;
};

// Defaults are Stable Diffusion 1's.
struct SchedulerConfig {
  Sampler sampler = Sampler::plms;
  Prediction prediction = Prediction::epsilon;
  int32_t train_steps = 1000;
  double beta_start = 0.00085, beta_end = 0.012;
  BetaCurve beta_curve = BetaCurve::scaled_linear;
  std::vector<double> trained_betas;  // instead of a curve, if not empty
  bool zero_terminal_snr = false;     // Lin et al. 2023
  std::optional<Schedule> spacing;    // linspace, leading or trailing; absent: the sampler's own
  std::optional<Schedule> sigma_schedule;  // karras, exponential or beta in that spacing
  int32_t steps_offset = 1;                // added to timesteps of leading spacing
  std::optional<bool> ends_at_alpha_one;   // set_alpha_to_one; absent: the sampler's default
  int32_t consistency_steps = 50;          // original_inference_steps of LCM and TCD
  FlowShift flow;
  // Settings of the file that would change the picture but are not implemented, as "key value";
  // first the class, if it is unknown.
  std::vector<std::string> ignored;
  bool operator==(const SchedulerConfig&) const = default;
};

// What the folder's model_index.json says; empty if it does not.
struct PipelineClasses {
  std::string_view scheduler;  // the class, instead of the file's _class_name
  // Some pipelines replace settings of old files: those of Stable Diffusion 1 and 2 take 1 for
  // steps_offset.
  std::string_view pipeline;
};

// Reads the JSON text of the file. Missing keys, and those that the class does not have, have the
// defaults of the class in diffusers; Euler replaces unknown schedulers. Throws invalid_argument
// naming the key, and unsupported for classes and modes that are not implemented.
SchedulerConfig parse_scheduler_config(std::string_view json, const PipelineClasses& index = {});

}  // namespace rbee::diffusion
