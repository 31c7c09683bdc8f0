#include "rbee/engine/image/control.h"

#include "rbee/engine/image/text.h"
#include "rbee/ops/elementwise.h"

namespace rbee::engine {
namespace {

void add(models::ControlStates& sum, const models::ControlStates& more) {
  for (size_t i = 0; i < sum.skips.size(); ++i) sum.skips[i] = sum.skips[i] + more.skips[i];
  sum.middle = sum.middle + more.middle;
}

}  // namespace

bool is_active_at(const ControlHint& hint, StepPlace place) {
  const double from = static_cast<double>(place.index) / place.count;
  const double to = static_cast<double>(place.index + 1) / place.count;
  return hint.scale != 0 && from >= double{hint.start} && to <= double{hint.finish};
}

ControlPass::ControlPass(std::span<const ControlHint> hints, const models::TextStates& text,
                         Circular circular)
    : circular_(circular) {
  const int64_t rows = text.context.dim(0);
  for (const ControlHint& hint : hints) {
    Part part{hint, hint.net->prepare(text)};
    part.hint.picture = repeated_rows(hint.picture, rows);
    parts_.push_back(std::move(part));
  }
}

std::optional<models::ControlStates> ControlPass::operator()(const Tensor& x,
                                                             const Tensor& timesteps,
                                                             StepPlace place) const {
  std::optional<models::ControlStates> sum;
  for (const Part& part : parts_) {
    if (!is_active_at(part.hint, place)) continue;
    const models::ControlStates added = (*part.hint.net)(
        {x, timesteps, part.hint.picture, part.hint.scale, circular_}, *part.conditioning);
    if (sum) {
      add(*sum, added);
    } else {
      sum = added;
    }
  }
  return sum;
}

}  // namespace rbee::engine
