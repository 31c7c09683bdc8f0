// A scheduler_config.json and its noise levels for a few steps, which must be finite and
// falling.

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "rbee/diffusion/levels.h"
#include "rbee/diffusion/samplers.h"
#include "tests/fuzz/expect_reason.h"

namespace {

using namespace rbee;

void check_levels(const diffusion::Levels& levels) {
  if (levels.sigmas.size() != levels.times.size() + 1) throw std::logic_error("other times");
  for (size_t i = 0; i < levels.sigmas.size(); ++i) {
    const double sigma = levels.sigmas[i];
    if (!std::isfinite(sigma) || sigma < 0) throw std::logic_error("a level that is no number");
    if (i > 0 && sigma > levels.sigmas[i - 1]) throw std::logic_error("levels that rise");
  }
  for (const double time : levels.times) {
    if (!std::isfinite(time)) throw std::logic_error("a time that is no number");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kTokens = 1024;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto config = diffusion::parse_scheduler_config(text);
    const diffusion::NoiseModel noise(config, kTokens);
    const auto levels =
        diffusion::make_levels(noise, config, {.sampler = config.sampler, .steps = 7});
    check_levels(levels);
    if (diffusion::make_plan(noise, levels, {.sampler = config.sampler}).count() == 0) {
      throw std::logic_error("no steps");
    }
  } catch (const Error& error) {
    fuzz::expect_reason(error);
  }
  return 0;
}
