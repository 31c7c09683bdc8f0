#pragma once
// Facts about AMD's architectures, by name, and about HIP's versions on them.

#include <string_view>

#include "backends/gpu/driver.h"

namespace rbee::rocm {

// As hipRuntimeGetVersion counts: major * 10,000,000 + minor * 100,000 + patch.
constexpr int hip_version(int major, int minor, int patch = 0) {
  return major * 10'000'000 + minor * 100'000 + patch;
}
// ROCm 5.2.3. From 5.2.0 to 5.2.2, if a captured graph has a kernel twice, it keeps only the second
// arguments (release notes of ROCm 5.2.3).
inline constexpr int kOldestRuntime = hip_version(5, 2, 21153);

// None for an unknown architecture: gfx1250, for example, has other matrix instructions than
// gfx1200.
gpu::MatrixUnit matrix_unit(std::string_view architecture);

// Inside a processor, with the host's memory.
bool is_integrated(std::string_view architecture);

// `reported`: by hipDeviceAttributeMultiprocessorCount. From gfx10 on that counts work-group
// processors of two compute units each, unless GPU_ENABLE_WGP_MODE is 0 in the environment
// (ROCm/hip issue 3767).
int compute_units(std::string_view architecture, int reported);

// Why replays of captured graphs are not trusted with this runtime on this architecture, in one
// line; empty if no fault is known.
std::string_view known_capture_fault(int version, std::string_view architecture);

}  // namespace rbee::rocm
