#include "tests/support/device_called.h"

#include "backends/api/registry.h"
#include "rbee/core/error.h"
#include "tests/support/op_table.h"

namespace rbee::harness {

Device& device_called(const std::string& name) {
  for (Device* device : all_devices()) {
    if (cat(device->id()) == name) return *device;
  }
  const std::optional<DeviceId> id = parse_device_id(name);
  if (!id) fail(Code::not_found, "device", name, " is no device");
  return get_device(*id);
}

}  // namespace rbee::harness
