#include "rbee/core/experimental.h"

namespace rbee {

std::string_view experimental(DeviceKind kind) {
  return kind == DeviceKind::metal ? "experimental: made and tested without an Apple machine" : "";
}

std::string_view experimental(std::string_view device) {
  const auto id = parse_device_id(device);
  return id ? experimental(id->kind) : "";
}

}  // namespace rbee
