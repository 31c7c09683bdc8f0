#include "rbee/diffusion/plan.h"

#include <utility>

#include "rbee/diffusion/adaptive.h"

namespace rbee::diffusion {

int32_t Plan::count() const {
  return adaptive != nullptr ? adaptive->steps() : static_cast<int32_t>(steps.size());
}

int32_t Plan::evaluations() const {
  int32_t count = 0;
  for (const PlanStep& step : steps) {
    for (const Instruction& instruction : step.work) {
      count += instruction.kind == Instruction::Kind::evaluate ? 1 : 0;
    }
  }
  return count;
}

void PlanWriter::evaluate(Register target, Register source, double sigma, double time,
                          Register unguided) {
  step_.work.push_back({.kind = Instruction::Kind::evaluate,
                        .target = target,
                        .source = source,
                        .unguided = unguided,
                        .sigma = sigma,
                        .time = time});
}

void PlanWriter::draw(Register target) {
  step_.work.push_back({.kind = Instruction::Kind::draw, .target = target});
}

void PlanWriter::combine(Register target, std::vector<Term> terms) {
  std::erase_if(terms, [](const Term& term) { return term.factor == 0; });
  step_.work.push_back(
      {.kind = Instruction::Kind::combine, .target = target, .terms = std::move(terms)});
}

void PlanWriter::end_step(Register denoised, double sigma) {
  step_.denoised = denoised;
  step_.sigma = sigma;
  plan_.steps.push_back(std::exchange(step_, {}));
}

Plan PlanWriter::finish(double final_scale) {
  plan_.final_scale = final_scale;
  return std::exchange(plan_, {});
}

}  // namespace rbee::diffusion
