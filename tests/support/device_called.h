#pragma once
// A device by its name, for programs and tests that are told one.

#include <string>

#include "backends/api/device.h"

namespace rbee::harness {

// The device called `name`, e.g. "cuda:0"; throws the reason why there is none.
Device& device_called(const std::string& name);

}  // namespace rbee::harness
