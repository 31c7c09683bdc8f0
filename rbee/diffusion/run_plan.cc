#include "rbee/diffusion/run_plan.h"

#include <span>
#include <utility>

#include "rbee/core/error.h"
#include "rbee/diffusion/adaptive.h"
#include "rbee/ops/elementwise.h"

namespace rbee::diffusion {
namespace {

Tensor scaled(const Tensor& x, double factor) {
  return factor == 1 ? x : affine(x, factor, 0);
}

Tensor sum(std::span<const Weighted> terms) {
  check(!terms.empty(), "weighted_sum", "there are no terms");
  Tensor out = scaled(*terms.front().tensor, terms.front().factor);
  for (const Weighted& term : terms.subspan(1)) out = out + scaled(*term.tensor, term.factor);
  return out;
}

class Runner {
 public:
  Runner(const Plan& plan, Tensor x, const PlanHooks& hooks)
      : hooks_(hooks), registers_(static_cast<size_t>(plan.registers)) {
    registers_.front() = std::move(x);
  }

  void run(const std::vector<Instruction>& work) {
    for (const Instruction& instruction : work) run(instruction);
  }

  Tensor& at(Register r) { return registers_[static_cast<size_t>(r)]; }

 private:
  void run(const Instruction& instruction) {
    switch (instruction.kind) {
      case Instruction::Kind::evaluate:
        return evaluate(instruction);
      case Instruction::Kind::draw:
        at(instruction.target) = hooks_.draw();
        return;
      case Instruction::Kind::combine:
        return combine(instruction);
    }
  }

  void evaluate(const Instruction& instruction) {
    const bool both = instruction.unguided >= 0;
    Evaluation seen =
        hooks_.evaluate(at(instruction.source), instruction.sigma, instruction.time, both);
    at(instruction.target) = std::move(seen.denoised);
    if (both) at(instruction.unguided) = std::move(seen.unguided);
  }

  void combine(const Instruction& instruction) {
    std::vector<Weighted> terms;
    for (const Term& term : instruction.terms) terms.push_back({&at(term.source), term.factor});
    at(instruction.target) = sum(terms);
  }

  const PlanHooks& hooks_;
  std::vector<Tensor> registers_;
};

// False when a hook ended it.
bool run_adaptive(AdaptiveSteps steps, Runner& runner, const PlanHooks& hooks) {
  const auto values = [&](Register r) { return runner.at(r).to_host<float>(); };
  runner.at(AdaptiveSteps::kBefore) = runner.at(kX);
  while (!steps.arrived()) {
    runner.run(steps.trial());
    const double error = trial_error(values(AdaptiveSteps::kLow), values(AdaptiveSteps::kHigh),
                                     values(AdaptiveSteps::kBefore));
    runner.run(steps.judge(error));
    const StepEnd end{steps.steps_done(), steps.sigma(), steps.arrived()};
    if (!hooks.after_step(end, runner.at(kX), runner.at(AdaptiveSteps::kDenoised))) return false;
  }
  return true;
}

}  // namespace

Tensor weighted_sum(std::initializer_list<Weighted> terms) {
  return sum(std::span(terms.begin(), terms.size()));
}

Tensor run_plan(const Plan& plan, Tensor x, const PlanHooks& hooks) {
  Runner runner(plan, std::move(x), hooks);
  if (plan.adaptive != nullptr && !run_adaptive(*plan.adaptive, runner, hooks)) {
    return runner.at(kX);
  }
  StepEnd end;
  for (const PlanStep& step : plan.steps) {
    runner.run(step.work);
    end = {.done = end.done + 1, .sigma = step.sigma, .last = end.done + 1 == plan.count()};
    if (!hooks.after_step(end, runner.at(kX), runner.at(step.denoised))) return runner.at(kX);
  }
  return scaled(runner.at(kX), plan.final_scale);
}

}  // namespace rbee::diffusion
