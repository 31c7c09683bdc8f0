#pragma once

#include <cmath>
#include <cstdint>

namespace rbee {

// see(from), see(from + step) and so on, below `to`.
template <typename See>
void for_steps(double from, double to, double step, const See& see) {
  const auto count = static_cast<int64_t>(std::ceil((to - from) / step));
  for (int64_t i = 0; i < count; ++i) see(from + static_cast<double>(i) * step);
}

}  // namespace rbee
