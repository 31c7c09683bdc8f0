#pragma once
// The environment variables that hide devices from a driver, for its errors.

#include <initializer_list>
#include <string>

namespace rbee::gpu {

// NAME="value", ... of those `names` that are set, even to an empty value; "" if none is.
std::string hiding_variables(std::initializer_list<const char*> names);

}  // namespace rbee::gpu
