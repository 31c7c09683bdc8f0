#pragma once
// Finds a device by name, for programs and tests that take a name.

#include <string>

#include "backends/api/device.h"

namespace rbee::harness {

// The device called `name`, e.g. "cuda:0"; throws the reason if there is none.
Device& device_called(const std::string& name);

}  // namespace rbee::harness
