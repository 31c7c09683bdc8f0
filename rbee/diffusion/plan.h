#pragma once
// What a sampler does, as data: calls of the model and linear combinations of a few latents, with
// coefficients that depend on the noise levels alone. Nothing in it depends on values, so a plan is
// made once for a request, and whoever runs it (run_plan.h) may keep all latents on a device. The
// one exception is a sampler that tries its steps (adaptive.h).

#include <cstdint>
#include <memory>
#include <vector>

namespace rbee::diffusion {

// A place for one latent. kX is what sampling works on.
using Register = int32_t;
inline constexpr Register kX = 0;

struct Term {
  Register source = 0;
  double factor = 0;
};

// One of:
//  evaluate: target = the picture that the model sees in `source`, whose noise has level `sigma`;
//            `unguided` (when not negative) = what it sees without the prompt's guidance
//  draw:     target = fresh normal numbers
//  combine:  target = sum of factor * source over the terms
struct Instruction {
  enum class Kind : uint8_t { evaluate, draw, combine };

  Kind kind = Kind::combine;
  Register target = 0;
  Register source = 0;
  Register unguided = -1;
  double sigma = 0;
  double time = 0;  // the model's name of sigma
  std::vector<Term> terms;
};

// What a user counts as a step; x has the noise of `sigma` after it.
struct PlanStep {
  std::vector<Instruction> work;
  Register denoised = 0;  // the picture that it estimated, for previews
  double sigma = 0;
};

class AdaptiveSteps;

struct Plan {
  Register registers = 1;
  std::vector<PlanStep> steps;
  std::shared_ptr<const AdaptiveSteps> adaptive;  // in place of steps, or null
  double final_scale = 1;                         // of x at the end

  // Steps in which a run is told.
  int32_t count() const;
  int32_t evaluations() const;  // of the steps
};

// Writes a plan step by step. Terms whose factor is 0 are left out.
class PlanWriter {
 public:
  Register add_register() { return plan_.registers++; }
  void evaluate(Register target, Register source, double sigma, double time,
                Register unguided = -1);
  void draw(Register target);
  void combine(Register target, std::vector<Term> terms);
  void end_step(Register denoised, double sigma);
  Plan finish(double final_scale);

 private:
  Plan plan_;
  PlanStep step_;
};

}  // namespace rbee::diffusion
