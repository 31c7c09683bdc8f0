// The stochastic Adams solver (Xue et al. 2023): a predictor of order 3 and a corrector of order 4
// in lambda = log(alpha / sigma), with fresh noise in the middle of the way alone. As ComfyUI has
// it.

#include <algorithm>
#include <array>
#include <span>

#include "rbee/diffusion/sampler_steps.h"

namespace rbee::diffusion {
namespace {

constexpr int32_t kPredictorOrder = 3, kCorrectorOrder = 4;
// Shares of the model's time between which noise is added.
constexpr double kNoiseFrom = 0.2, kNoiseTo = 0.8;

// The integral of m e^(m u) u^power from -length to 0.
double moment(int32_t power, double m, double length) {
  double out = -std::expm1(-m * length);
  double start = 1;  // (-length)^p
  for (int32_t p = 1; p <= power; ++p) {
    start *= -length;
    out = -start * std::exp(-m * length) - p / m * out;
  }
  return out;
}

// The integral of m e^(m u) L(u) from -length to 0, where L is the polynomial that is 1 at nodes[j]
// and 0 at the other nodes (equations 15 and 18).
double weight(std::span<const double> nodes, size_t j, double m, double length) {
  std::vector<double> polynomial{1};  // the factor of u^0 first
  for (size_t k = 0; k < nodes.size(); ++k) {
    if (k == j) continue;
    const double scale = 1 / (nodes[j] - nodes[k]);
    std::vector<double> product(polynomial.size() + 1);
    for (size_t p = 0; p < polynomial.size(); ++p) {
      product[p] -= polynomial[p] * nodes[k] * scale;
      product[p + 1] += polynomial[p] * scale;
    }
    polynomial = std::move(product);
  }
  double out = 0;
  for (size_t p = 0; p < polynomial.size(); ++p) {
    out += polynomial[p] * moment(static_cast<int32_t>(p), m, length);
  }
  return out;
}

// From one level to the next. The predictor and the corrector of a step add the same noise.
struct Way {
  double from = 0, to = 0;  // lambdas
  double sigma_from = 0, sigma_to = 0;
  double tau = 0;  // share of fresh noise
};

class Solver {
 public:
  explicit Solver(Steps& steps)
      : steps_(steps),
        sigmas_(levels_with_signal(steps)),
        state_(steps.writer.add_register()),
        normals_(steps.writer.add_register()) {
    for (Register& picture : pictures_) picture = steps.writer.add_register();
  }

  // evaluates_twice: also after the corrector (PECE), else once a step.
  void run(bool evaluates_twice) {
    const int32_t count = steps_.count();
    for (int32_t i = 0; i < count; ++i) {
      steps_.evaluate_at(picture(i), i, sigma(i));
      // Lower orders near the end.
      const bool corrects = i > 0 && (evaluates_twice || !steps_.ends_at(i));
      const int32_t corrector =
          corrects
              ? std::min({kCorrectorOrder, i + 1, steps_.ends_at(count - 1) ? count - i : i + 1})
              : 0;
      if (corrector == 0) {
        steps_.writer.combine(state_, {{kX, 1}});
      } else {
        move(state_, i, corrector);
        if (evaluates_twice) {
          steps_.writer.evaluate(picture(i), state_, sigma(i), steps_.levels.times[index(i)]);
        }
      }
      predict(i);
      steps_.writer.end_step(picture(i), steps_.sigma(i + 1));
    }
  }

 private:
  static size_t index(int32_t i) { return static_cast<size_t>(i); }
  double sigma(int32_t i) const { return sigmas_[index(i)]; }
  Register picture(int32_t i) const { return pictures_[index(i % kCorrectorOrder)]; }

  double tau(double level) const {
    const NoiseModel& noise = steps_.noise;
    const double last = noise.is_flow() ? noise.train_steps() : noise.train_steps() - 1;
    const bool inside = level <= noise.sigma((1 - kNoiseFrom) * last) &&
                        level >= noise.sigma((1 - kNoiseTo) * last);
    return inside ? steps_.eta : 0;
  }

  void predict(int32_t i) {
    if (steps_.ends_at(i)) return steps_.writer.combine(kX, {{picture(i), 1}});
    way_ = {.from = steps_.noise.lambda(sigma(i)),
            .to = steps_.noise.lambda(sigma(i + 1)),
            .sigma_from = sigma(i),
            .sigma_to = sigma(i + 1),
            .tau = tau(sigma(i + 1))};
    if (way_.tau > 0) steps_.writer.draw(normals_);
    const int32_t to_end = steps_.ends_at(steps_.count() - 1) ? steps_.count() - 1 - i : i + 1;
    move(kX, i, std::min({kPredictorOrder, i + 1, to_end}));
  }

  // target = the state after way_, by the pictures of `order` levels up to level i.
  void move(Register target, int32_t i, int32_t order) {
    const double length = way_.to - way_.from;
    const double square = way_.tau * way_.tau;
    std::vector<Term> terms{{state_, way_.sigma_to / way_.sigma_from * std::exp(-square * length)}};
    std::vector<double> nodes;
    for (int32_t j = 0; j < order; ++j) {
      nodes.push_back(steps_.noise.lambda(sigma(i - j)) - way_.to);
    }
    for (int32_t j = 0; j < order; ++j) {
      const double alpha = steps_.noise.alpha(way_.sigma_to);
      terms.push_back({picture(i - j), alpha * weight(nodes, index(j), 1 + square, length)});
    }
    const double fresh = std::sqrt(-std::expm1(-2 * square * length));
    terms.push_back({normals_, way_.sigma_to * fresh * steps_.noise_scale});
    steps_.writer.combine(target, std::move(terms));
  }

  Steps& steps_;
  std::vector<double> sigmas_;
  Register state_, normals_;
  std::array<Register, kCorrectorOrder> pictures_{};
  Way way_;
};

}  // namespace

void sa_solver(Steps& steps, bool evaluates_twice) {
  Solver(steps).run(evaluates_twice);
}

}  // namespace rbee::diffusion
