#include "rbee/core/progress_text.h"

#include <cmath>

#include "rbee/core/byte_text.h"
#include "rbee/core/cat.h"

namespace rbee {
namespace {

std::string duration_to_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  if (whole < 60) return cat(whole, " s");
  if (whole < 3600) return cat(whole / 60, " min ", whole % 60, " s");
  return cat(whole / 3600, " h ", whole % 3600 / 60, " min");
}

}  // namespace

std::string progress_to_text(int64_t done, int64_t total, std::optional<double> bytes_per_second,
                             std::optional<double> seconds_left) {
  std::string out = cat(bytes_to_text(done), " of ", bytes_to_text(total));
  if (total > 0) out += cat(" (", done * 100 / total, " %)");
  if (bytes_per_second.value_or(0) > 0) {
    out += cat(", ", bytes_to_text(static_cast<int64_t>(*bytes_per_second)), "/s");
  }
  if (seconds_left) out += cat(", ", duration_to_text(*seconds_left), " left");
  return out;
}

}  // namespace rbee
