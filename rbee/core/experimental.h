#pragma once
// Kinds of devices that nobody has run this program on.

#include <string_view>

#include "rbee/core/device_id.h"

namespace rbee {

// What users are told of the kind, in one line; empty: it has been tried. `--device auto` passes
// such devices over, so that their results reach only who asked for them.
std::string_view experimental(DeviceKind kind);
// The same of the device that a text names, such as "metal:0"; empty for other texts.
std::string_view experimental(std::string_view device);

}  // namespace rbee
