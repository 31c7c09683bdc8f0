#include "rbee/ops/random.h"

#include <cmath>

#include "rbee/ops/checks.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

Tensor random(const char* op, const Shape& shape, DType dtype, Device& device, RandomArgs args) {
  check(is_float(dtype), op, "dtype is ", dtype, ", not a float type");
  Tensor y = empty(shape, dtype, device);
  args.y = y.view();
  run(op, kernels(y).random, args, y.stream());
  return y;
}

}  // namespace

Tensor random_uniform(const Shape& shape, DType dtype, Device& device,
                      const UniformOptions& options) {
  check(std::isfinite(options.high - options.low) && options.low < options.high, "random_uniform",
        "[", options.low, ", ", options.high, ") is not a range");
  return random("random_uniform", shape, dtype, device,
                {.kind = RandomKind::uniform,
                 .seed = options.seed,
                 .offset = options.offset,
                 .a = options.low,
                 .b = options.high});
}

Tensor random_normal(const Shape& shape, DType dtype, Device& device,
                     const NormalOptions& options) {
  check(std::isfinite(options.mean) && std::isfinite(options.stddev) && options.stddev >= 0,
        "random_normal", "mean ", options.mean, " and standard deviation ", options.stddev,
        ": wanted finite numbers, the second not negative");
  return random("random_normal", shape, dtype, device,
                {.kind = RandomKind::normal,
                 .seed = options.seed,
                 .offset = options.offset,
                 .a = options.mean,
                 .b = options.stddev});
}

}  // namespace rbee
