#pragma once
// A sampler as data: calls of the model and linear combinations of a few latents, with coefficients
// that depend only on the noise levels. A plan does not depend on values, so it is made once for a
// request, and its runner (run_plan.h) can keep all latents on a device. The one exception is the
// adaptive sampler (adaptive.h).

#include <cstdint>
#include <memory>
#include <vector>

namespace rbee::diffusion {

// A register holds one latent. kX is the latent that sampling changes.
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
  double time = 0;  // the model's time of sigma
  std::vector<Term> terms;
};

// A step as users count them. After it, x has the noise of `sigma`.
struct PlanStep {
  std::vector<Instruction> work;
  Register denoised = 0;  // the estimated picture, for previews
  double sigma = 0;
};

class AdaptiveSteps;

struct Plan {
  Register registers = 1;
  std::vector<PlanStep> steps;
  std::shared_ptr<const AdaptiveSteps> adaptive;  // instead of steps, or null
  double final_scale = 1;                         // of x at the end

  // The number of steps that a run reports.
  int32_t count() const;
  int32_t evaluations() const;  // of the steps
};

// Writes a plan step by step. Leaves out terms with factor 0.
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
