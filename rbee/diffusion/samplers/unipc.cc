// UniPC of order 2 with B2(h) = e^h - 1 and prediction of the picture (Zhao et al. 2023): each
// step's picture also corrects the step that led to it, at no further call of the model.

#include "rbee/diffusion/sampler_steps.h"

namespace rbee::diffusion {
namespace {

// Both halves' view of the step from level i: x' = straight part - base * (corrections).
struct Phi {
  double straight_x, straight_picture;
  double base;    // alpha' (e^-h - 1)
  double b1, b2;  // right-hand sides of the paper's order conditions
  double ratio;   // of the step before, in lambda, to this one; negative
};

Phi phi(const Steps& steps, int32_t i) {
  const double h = steps.lambda(i + 1) - steps.lambda(i);
  const double e1 = std::expm1(-h);
  const double e2 = e1 / -h - 1;
  const double e3 = e2 / -h - 0.5;
  Phi out{};
  out.straight_x = steps.sigma(i + 1) / steps.sigma(i);
  out.straight_picture = steps.alpha(i + 1) - steps.alpha(i) * out.straight_x;
  out.base = steps.alpha(i + 1) * e1;
  out.b1 = e2 / e1;
  out.b2 = 2 * e3 / e1;
  out.ratio = i > 0 ? (steps.lambda(i - 1) - steps.lambda(i)) / h : 0;
  return out;
}

struct Pictures {
  Register newest, before, earlier;
};

// x = the step from level i - 1 done again, now that the picture at its end is known.
void correct(Steps& steps, Register start, const Pictures& pictures, int32_t i) {
  const Phi p = phi(steps, i - 1);
  const bool second_order = i > 1;
  double past = 0;
  double ahead = 0.5;
  if (second_order) {
    const double solved = (p.b2 - p.b1) / (p.ratio - 1);
    past = solved / p.ratio;
    ahead = p.b1 - solved;
  }
  steps.writer.combine(kX, {{start, p.straight_x},
                            {pictures.before, p.straight_picture + p.base * (past + ahead)},
                            {pictures.earlier, -p.base * past},
                            {pictures.newest, -p.base * ahead}});
}

}  // namespace

void unipc(Steps& steps) {
  PlanWriter& writer = steps.writer;
  const Register start = writer.add_register();
  Pictures pictures{writer.add_register(), writer.add_register(), writer.add_register()};
  for (int32_t i = 0; i < steps.count(); ++i) {
    steps.evaluate(pictures.newest, i);
    if (i > 0) correct(steps, start, pictures, i);
    writer.combine(start, {{kX, 1}});
    const bool second_order = i > 0 && i + 1 < steps.count();
    if (second_order) {
      const Phi p = phi(steps, i);
      const double past = 0.5 / p.ratio;
      writer.combine(kX, {{kX, p.straight_x},
                          {pictures.newest, p.straight_picture + p.base * past},
                          {pictures.before, -p.base * past}});
    } else {
      move_straight(steps, kX, steps.sigma(i), steps.sigma(i + 1), pictures.newest);
    }
    writer.end_step(pictures.newest, steps.sigma(i + 1));
    pictures = {pictures.earlier, pictures.newest, pictures.before};
  }
}

}  // namespace rbee::diffusion
