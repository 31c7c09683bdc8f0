// Exponential integrators on the picture, in lambda = log(alpha / sigma), with fresh noise in each
// part of a step: SEEDS with two and three calls a step (Gonzalez et al. 2023), the exponential
// Heun method as its form that looks ahead over the whole step, and the extended reverse-time SDE
// of order 3 (Cui et al. 2023). Coefficients as ComfyUI has them.

#include <algorithm>
#include <vector>

#include "rbee/diffusion/sampler_steps.h"

namespace rbee::diffusion {
namespace {

// (e^z - 1) and (e^z - 1 - z) / z: the weights of a constant picture, and of one that changes
// evenly.
double phi1(double z) {
  return std::expm1(z);
}
double phi2(double z) {
  return (std::expm1(z) - z) / z;
}

// A step in parts. Shares of it are shares of its length in lambda.
class ExponentialStep {
 public:
  // normals: registers for the fresh noise of each part.
  ExponentialStep(Steps& steps, double from, double to, double eta, std::vector<Register> normals)
      : steps_(steps),
        from_(from),
        to_(to),
        lambda_(steps.noise.lambda(from)),
        length_(steps.noise.lambda(to) - lambda_),
        eta_(eta),
        normals_(std::move(normals)) {}

  double level(double share) const {
    if (share == 1) return to_;
    return steps_.noise.sigma_of_lambda(lambda_ + share * length_);
  }
  // The exponent in the weights of the pictures at `share`.
  double z(double share) const { return -share * length_ * (1 + eta_); }

  // target = x at `share`. pictures: their weights, which are multiplied by -alpha. The noise of
  // earlier parts decays as x does, and the noise of this part is drawn.
  void move(Register target, double share, const std::vector<Term>& pictures) {
    const double level = this->level(share);
    std::vector<Term> terms{{kX, level / from_ * std::exp(-share * length_ * eta_)}};
    for (const Term& term : pictures) {
      terms.push_back({term.source, -steps_.noise.alpha(level) * term.factor});
    }
    if (eta_ > 0) {
      const double part = (share - share_) * length_ * eta_;
      for (Term& before : path_) before.factor *= std::exp(-part);
      const Register fresh = normals_[path_.size()];
      steps_.writer.draw(fresh);
      path_.push_back({fresh, std::sqrt(-std::expm1(-2 * part))});
      share_ = share;
      for (const Term& term : path_) {
        terms.push_back({term.source, term.factor * level * steps_.noise_scale});
      }
    }
    steps_.writer.combine(target, std::move(terms));
  }

 private:
  Steps& steps_;
  double from_, to_;
  double lambda_, length_;  // at the start; of the step
  double eta_;
  std::vector<Register> normals_;
  std::vector<Term> path_;  // the noise so far, as shares of the level that `share_` has
  double share_ = 0;        // up to where the noise is drawn
};

// Writes the steps. write(step, first picture) writes one to a level above 0.
template <typename Write>
void exponential_steps(Steps& steps, double eta, size_t parts, const Write& write) {
  const Register first = steps.writer.add_register();
  std::vector<Register> normals;
  for (size_t i = 0; i < parts; ++i) normals.push_back(steps.writer.add_register());
  const std::vector<double> sigmas = levels_with_signal(steps);
  for (int32_t i = 0; i < steps.count(); ++i) {
    const double now = sigmas[static_cast<size_t>(i)];
    steps.evaluate_at(first, i, now);
    if (steps.ends_at(i)) {
      steps.writer.combine(kX, {{first, 1}});
    } else {
      ExponentialStep step(steps, now, steps.sigma(i + 1), eta, normals);
      write(step, first);
    }
    steps.writer.end_step(first, steps.sigma(i + 1));
  }
}

}  // namespace

void seeds_2(Steps& steps) {
  constexpr double kHalf = 0.5;
  const Register middle = steps.writer.add_register();
  const Register second = steps.writer.add_register();
  exponential_steps(steps, steps.eta, 2, [&](ExponentialStep& step, Register first) {
    step.move(middle, kHalf, {{first, phi1(step.z(kHalf))}});
    steps.evaluate_between(second, middle, step.level(kHalf));
    step.move(kX, 1, {{second, phi1(step.z(1))}});
  });
}

void exp_heun_2_x0(Steps& steps, bool fresh_noise) {
  const Register ahead = steps.writer.add_register();
  const Register second = steps.writer.add_register();
  const double eta = fresh_noise ? steps.eta : 0;
  exponential_steps(steps, eta, 2, [&](ExponentialStep& step, Register first) {
    const double z = step.z(1);
    step.move(ahead, 1, {{first, phi1(z)}});
    steps.evaluate_between(second, ahead, step.level(1));
    step.move(kX, 1, {{first, phi1(z) - phi2(z)}, {second, phi2(z)}});
  });
}

void seeds_3(Steps& steps) {
  constexpr double kThird = 1.0 / 3, kRest = 2.0 / 3;
  const Register middle = steps.writer.add_register();
  const Register picture = steps.writer.add_register();
  exponential_steps(steps, steps.eta, 3, [&](ExponentialStep& step, Register first) {
    step.move(middle, kThird, {{first, phi1(step.z(kThird))}});
    steps.evaluate_between(picture, middle, step.level(kThird));
    const double late = kRest / kThird * phi2(step.z(kRest));
    step.move(middle, kRest, {{first, phi1(step.z(kRest)) - late}, {picture, late}});
    steps.evaluate_between(picture, middle, step.level(kRest));
    const double last = phi2(step.z(1)) / kRest;
    step.move(kX, 1, {{first, phi1(step.z(1)) - last}, {picture, last}});
  });
}

namespace {

// How much noise the reverse-time SDE adds at this ratio of noise to signal.
double noise_scaling(double ratio) {
  constexpr double kPower = 0.3, kBase = 10;
  return ratio * (std::exp(std::pow(ratio, kPower)) + kBase);
}

// Integrals over a step of ratios, from `now` down to `next`, of 1 / noise_scaling and of the
// distance from `now` over it. Sums of 200 equal parts, as the authors have them: other sums would
// make other pictures.
struct Integrals {
  double rate = 0, distance = 0;
};
Integrals integrals(double now, double next) {
  constexpr int kParts = 200;
  const double part = (now - next) / kParts;
  Integrals out;
  for (int i = 0; i < kParts; ++i) {
    const double at = next + i * part;
    const double weight = part / noise_scaling(at);
    out.rate += weight;
    out.distance += weight * (at - now);
  }
  return out;
}

}  // namespace

void er_sde(Steps& steps) {
  PlanWriter& writer = steps.writer;
  Register denoised = writer.add_register();
  Register before = writer.add_register();
  Register slope = writer.add_register();
  Register slope_before = writer.add_register();
  const Register normals = writer.add_register();
  const std::vector<double> sigmas = levels_with_signal(steps);
  const auto ratio = [&](int32_t i) {
    const double sigma = sigmas[static_cast<size_t>(i)];
    return sigma / steps.noise.alpha(sigma);
  };
  for (int32_t i = 0; i < steps.count(); ++i) {
    steps.evaluate_at(denoised, i, sigmas[static_cast<size_t>(i)]);
    if (steps.ends_at(i)) {
      writer.combine(kX, {{denoised, 1}});
      writer.end_step(denoised, 0);
      break;
    }
    const double now = ratio(i), next = ratio(i + 1), change = next - now;
    const double alpha = steps.alpha(i + 1);
    const double keep = noise_scaling(next) / noise_scaling(now);
    const double alphas = alpha / steps.noise.alpha(sigmas[static_cast<size_t>(i)]);
    std::vector<Term> terms{{kX, alphas * keep}, {denoised, alpha * (1 - keep)}};
    if (i > 0) {
      const Integrals sums = integrals(now, next);
      const double length = now - ratio(i - 1);
      writer.combine(slope, {{denoised, 1 / length}, {before, -1 / length}});
      double along = change + sums.rate * noise_scaling(next);
      if (i > 1) {
        const double bend =
            (change * change / 2 + sums.distance * noise_scaling(next)) * 2 / (now - ratio(i - 2));
        along += bend;
        terms.push_back({slope_before, -alpha * bend});
      }
      terms.push_back({slope, alpha * along});
    }
    writer.draw(normals);
    const double fresh = std::sqrt(std::max(next * next - now * now * keep * keep, 0.0));
    terms.push_back({normals, alpha * fresh * steps.noise_scale});
    writer.combine(kX, std::move(terms));
    writer.end_step(denoised, steps.sigma(i + 1));
    std::swap(denoised, before);
    std::swap(slope, slope_before);
  }
}

}  // namespace rbee::diffusion
