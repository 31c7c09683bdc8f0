#pragma once

#include "backends/api/registry.h"
#include "backends/linked/linked_backends.h"

namespace rbee::fuzz {

inline Device& cpu() {
  static Device& device = []() -> Device& {
    register_linked_backends();
    return get_device(parse_device_id("cpu").value());
  }();
  return device;
}

}  // namespace rbee::fuzz
