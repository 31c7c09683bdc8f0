#pragma once
// Which device a tensor lives on: kind and ordinal, printed as "cpu:0", "cuda:1", "rocm:0".

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rbee {

enum class DeviceKind : uint8_t { cpu, cuda, rocm, metal };

struct DeviceId {
  DeviceKind kind = DeviceKind::cpu;
  int ordinal = 0;
  bool operator==(const DeviceId&) const = default;
};

std::string_view name(DeviceKind kind);
// Reads "cpu", "cuda:0", ...; nothing if the text is not a device.
std::optional<DeviceId> parse_device_id(std::string_view text);
void append_to(std::string& out, DeviceId id);

}  // namespace rbee
