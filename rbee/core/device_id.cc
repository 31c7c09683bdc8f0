#include "rbee/core/device_id.h"

#include <array>
#include <charconv>

#include "rbee/core/cat.h"

namespace rbee {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"cpu", "cuda", "rocm", "metal"};

}  // namespace

std::string_view name(DeviceKind kind) {
  return kNames[static_cast<size_t>(kind)];
}

std::optional<DeviceId> parse_device_id(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  int ordinal = 0;
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    const char* end = digits.data() + digits.size();
    const auto [ptr, error] = std::from_chars(digits.data(), end, ordinal);
    if (error != std::errc{} || ptr != end || ordinal < 0) return std::nullopt;
  }
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kind == kNames[i]) return DeviceId{static_cast<DeviceKind>(i), ordinal};
  }
  return std::nullopt;
}

void append_to(std::string& out, DeviceId id) {
  append_to(out, name(id.kind));
  out.push_back(':');
  append_to(out, id.ordinal);
}

}  // namespace rbee
