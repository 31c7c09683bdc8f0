#pragma once
// What is known of AMD's architectures, by their names, and of HIP's versions on them.

#include <string_view>

#include "backends/gpu/driver.h"

namespace rbee::rocm {

// As hipRuntimeGetVersion counts: major * 10,000,000 + minor * 100,000 + patch.
constexpr int hip_version(int major, int minor, int patch = 0) {
  return major * 10'000'000 + minor * 100'000 + patch;
}
// ROCm 5.2.3. From 5.2.0 to 5.2.2 a recording keeps of a kernel that comes twice the second
// arguments alone (release notes of ROCm 5.2.3).
inline constexpr int kOldestRuntime = hip_version(5, 2, 21153);

// Of an architecture that nobody knows: none. gfx1250, for one, has other matrix instructions than
// gfx1200.
gpu::MatrixUnit matrix_unit(std::string_view architecture);

// `reported`: by hipDeviceAttributeMultiprocessorCount. From gfx10 on that counts work-group
// processors of two compute units each, unless GPU_ENABLE_WGP_MODE is 0 in the environment
// (ROCm/hip issue 3767).
int compute_units(std::string_view architecture, int reported);

// Why replays of recorded work are not trusted with this runtime on this architecture, one line;
// empty: nothing is known against them.
std::string_view known_capture_fault(int version, std::string_view architecture);

}  // namespace rbee::rocm
