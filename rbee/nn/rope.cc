#include "rbee/nn/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "rbee/core/error.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/indexing.h"

namespace rbee::nn {
namespace {

constexpr const char* kOp = "rope";

std::vector<double> plain_frequencies(const RopeOptions& options, double base) {
  std::vector<double> radians(static_cast<size_t>(options.rotary_dim / 2));
  for (size_t i = 0; i < radians.size(); ++i) {
    radians[i] =
        std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(options.rotary_dim));
  }
  return radians;
}

void divide(std::vector<double>& radians, const std::vector<double>& divisors, const char* field) {
  check(divisors.size() == radians.size(), kOp, field, " has ", divisors.size(), " values, wanted ",
        radians.size());
  for (size_t i = 0; i < radians.size(); ++i) {
    check(divisors[i] > 0, kOp, field, "[", i, "] is ", divisors[i], ", wanted a positive number");
    radians[i] /= divisors[i];
  }
}

// Grows the base with the context, so that the longest wavelength stretches by `factor` times the
// excess and the shortest stays.
double dynamic_base(const RopeOptions& options, int64_t positions) {
  check(options.trained_positions > 0 && options.rotary_dim > 2, kOp,
        "dynamic scaling needs trained positions and more than two rotated elements");
  if (positions <= options.trained_positions) return options.base;
  const double excess = options.factor * static_cast<double>(positions) /
                            static_cast<double>(options.trained_positions) -
                        (options.factor - 1);
  const auto dim = static_cast<double>(options.rotary_dim);
  return options.base * std::pow(excess, dim / (dim - 2));
}

// Peng et al. 2023, equation 17: the index with `rotations` wavelengths in the context.
double yarn_index(const RopeOptions& options, double rotations) {
  const double context = static_cast<double>(options.original_positions);
  return static_cast<double>(options.rotary_dim) *
         std::log(context / (rotations * 2 * std::numbers::pi)) / (2 * std::log(options.base));
}

void apply_yarn(const RopeOptions& options, std::vector<double>& radians) {
  double low = yarn_index(options, options.beta_fast);
  double high = yarn_index(options, options.beta_slow);
  if (options.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(options.rotary_dim - 1));
  constexpr double kNarrowest = 0.001;
  const double width = high == low ? kNarrowest : high - low;
  for (size_t i = 0; i < radians.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / width, 0.0, 1.0);
    radians[i] = radians[i] / options.factor * ramp + radians[i] * (1 - ramp);
  }
}

// Peng et al. 2023, equation 22, written as a factor of cos and sin.
double yarn_magnitude(const RopeOptions& options) {
  if (options.attention_factor) return *options.attention_factor;
  const auto magnitude = [&](double scale) {
    return options.factor <= 1 ? 1.0 : 0.1 * scale * std::log(options.factor) + 1.0;
  };
  if (options.mscale != 0 && options.mscale_all_dim != 0) {
    return magnitude(options.mscale) / magnitude(options.mscale_all_dim);
  }
  return magnitude(1);
}

void apply_llama3(const RopeOptions& options, std::vector<double>& radians) {
  const double low = options.low_freq_factor;
  const double high = options.high_freq_factor;
  check(high > low, kOp, "high_freq_factor is ", high, ", wanted more than low_freq_factor ", low);
  for (double& frequency : radians) {
    const double wavelength = 2 * std::numbers::pi / frequency;
    const double rotations = static_cast<double>(options.original_positions) / wavelength;
    const double keep = std::clamp((rotations - low) / (high - low), 0.0, 1.0);
    frequency = frequency * keep + frequency / options.factor * (1 - keep);
  }
}

// Ding et al. 2024, section 4.3.
double longrope_magnitude(const RopeOptions& options) {
  if (options.attention_factor) return *options.attention_factor;
  if (options.factor <= 1) return 1;
  const auto original = static_cast<double>(options.original_positions);
  check(original > 1, kOp, "longrope needs more than ", options.original_positions,
        " original positions");
  return std::sqrt(1 + std::log(options.factor) / std::log(original));
}

// Of the queries of each position.
std::vector<float> query_factors(const RopeOptions& options, int64_t positions) {
  check(options.original_positions > 0, kOp, "original positions are ", options.original_positions,
        ", wanted at least 1");
  std::vector<float> factors(static_cast<size_t>(positions));
  for (int64_t position = 0; position < positions; ++position) {
    const auto spans = static_cast<double>(position / options.original_positions);
    factors[static_cast<size_t>(position)] =
        static_cast<float>(1 + options.query_growth * std::log1p(spans));
  }
  return factors;
}

void check_options(const RopeOptions& options, int64_t positions) {
  check(options.rotary_dim > 0 && options.rotary_dim % 2 == 0, kOp, "rotary_dim is ",
        options.rotary_dim, ", wanted a positive even number");
  check(std::isfinite(options.base) && options.base > 1, kOp, "base is ", options.base,
        ", wanted a number above 1");
  check(std::isfinite(options.factor) && options.factor > 0, kOp, "scaling factor is ",
        options.factor, ", wanted a positive number");
  check(positions > 0, kOp, "a context of ", positions, " positions");
  const bool extends = options.scaling == RopeScaling::yarn ||
                       options.scaling == RopeScaling::llama3 ||
                       options.scaling == RopeScaling::longrope;
  check(!extends || options.original_positions > 0, kOp, "original positions are ",
        options.original_positions, ", wanted at least 1");
}

// Before the system ends a process that fills what it does not have.
void check_room(int64_t positions, int64_t pairs, const Device& device) {
  const double bytes =
      2.0 * sizeof(float) * static_cast<double>(positions) * static_cast<double>(pairs);
  const int64_t free = device.memory().free;
  if (free == 0 || bytes <= static_cast<double>(free)) return;
  constexpr double kMiB = 1024.0 * 1024.0;
  fail(Code::out_of_memory, kOp, "a context of ", positions, " positions needs ",
       std::llround(bytes / kMiB), " MiB for its rotations, ", free >> 20, " MiB are free");
}

}  // namespace

RopeFrequencies rope_frequencies(const RopeOptions& options, int64_t positions) {
  check_options(options, positions);
  const bool dynamic = options.scaling == RopeScaling::dynamic;
  RopeFrequencies out;
  out.radians =
      plain_frequencies(options, dynamic ? dynamic_base(options, positions) : options.base);
  if (options.scaling == RopeScaling::linear) {
    for (double& frequency : out.radians) frequency /= options.factor;
  } else if (options.scaling == RopeScaling::yarn) {
    apply_yarn(options, out.radians);
    out.magnitude = yarn_magnitude(options);
  } else if (options.scaling == RopeScaling::llama3) {
    apply_llama3(options, out.radians);
  } else if (options.scaling == RopeScaling::longrope) {
    const bool extended = positions > options.original_positions;
    divide(out.radians, extended ? options.long_factors : options.short_factors,
           extended ? "long_factor" : "short_factor");
    out.magnitude = longrope_magnitude(options);
  }
  if (!options.frequency_divisors.empty()) {
    divide(out.radians, options.frequency_divisors, "rope_freqs");
  }
  return out;
}

Rope::Rope(const RopeOptions& options, int64_t positions, Device& device)
    : layout_(options.layout) {
  const RopeFrequencies frequencies = rope_frequencies(options, positions);
  const size_t width = frequencies.radians.size();
  check_room(positions, std::ssize(frequencies.radians), device);
  std::vector<float> cosines(static_cast<size_t>(positions) * width);
  std::vector<float> sines(cosines.size());
  for (size_t i = 0; i < cosines.size(); ++i) {
    const size_t position = i / width;
    const double angle = static_cast<double>(position) * frequencies.radians[i % width];
    cosines[i] = static_cast<float>(std::cos(angle) * frequencies.magnitude);
    sines[i] = static_cast<float>(std::sin(angle) * frequencies.magnitude);
  }
  const Shape shape{positions, options.rotary_dim / 2};
  cos_ = from_host<float>(cosines, shape, device);
  sin_ = from_host<float>(sines, shape, device);
  if (options.query_growth == 0) return;
  query_growth_ = from_host<float>(query_factors(options, positions), {positions}, device);
}

Tensor Rope::grown(const Tensor& q, const Tensor& positions) const {
  if (!query_growth_.defined()) return q;
  const Tensor factors = cast(index_select(query_growth_, Axis{0}, positions), q.dtype());
  return q * factors.reshape({q.dim(0), 1, 1});
}

}  // namespace rbee::nn
