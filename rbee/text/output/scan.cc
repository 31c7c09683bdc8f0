#include "rbee/text/output/scan.h"

#include <algorithm>

namespace rbee::text {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

}  // namespace

FoundMarker find_first(std::string_view text, std::span<const std::string_view> markers) {
  FoundMarker out;
  for (size_t i = 0; i < markers.size(); ++i) {
    const size_t at = text.find(markers[i]);
    if (at == std::string_view::npos || at > out.at) continue;
    if (at == out.at && markers[i].size() <= markers[out.which].size()) continue;
    out = {at, i};
  }
  return out;
}

size_t open_tail(std::string_view text, std::span<const std::string_view> markers) {
  size_t out = 0;
  for (const std::string_view marker : markers) {
    for (size_t length = std::min(text.size(), marker.size() - 1); length > out; --length) {
      if (text.substr(text.size() - length) == marker.substr(0, length)) out = length;
    }
  }
  return out;
}

size_t leading_space(std::string_view text) {
  return std::min(text.find_first_not_of(kSpace), text.size());
}

size_t trailing_space(std::string_view text) {
  return text.size() - (text.find_last_not_of(kSpace) + 1);
}

Begins begins_with(std::string_view text, std::string_view marker) {
  if (text.starts_with(marker)) return Begins::yes;
  return marker.starts_with(text) ? Begins::unknown : Begins::no;
}

}  // namespace rbee::text
