#include "backends/cpu/ref/gated.h"

#include <numbers>

#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"

namespace rbee::cpu {
namespace {

double activate(GateOp op, double x) {
  switch (op) {
    case GateOp::silu:
      return x / (1 + std::exp(-x));
    case GateOp::gelu: {
      constexpr double kCubic = 0.044715;
      const double inner = std::sqrt(2 * std::numbers::inv_pi) * (x + kCubic * x * x * x);
      return 0.5 * x * (1 + std::tanh(inner));
    }
    case GateOp::gelu_erf:
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case GateOp::relu:
      return x < 0 ? 0 : x;
    case GateOp::sigmoid:
      return 1 / (1 + std::exp(-x));
  }
  return x;
}

void run_gated(const GatedArgs& args, Stream&) {
  dispatch_floats("gated", args.y.dtype, [&]<typename T>() {
    const auto one = [&](int64_t gate, int64_t up, int64_t y) {
      const double open = activate(args.op, load(args.gate.as<T>()[gate]));
      args.y.as<T>()[y] = store<T>(open * static_cast<double>(load(args.up.as<T>()[up])));
    };
    for_each(one, args.gate, args.up, args.y);
  });
}

}  // namespace

const Impl<GatedArgs> ref_gated{"ref", never_refuse, run_gated};

}  // namespace rbee::cpu
