#include "backends/rocm/known_devices.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace rbee::rocm {
namespace {

constexpr std::string_view kMfma[] = {"gfx908", "gfx90a", "gfx942", "gfx950"};
constexpr std::string_view kWmma[] = {"gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150",
                                      "gfx1151", "gfx1152", "gfx1153", "gfx1200", "gfx1201"};

constexpr std::string_view kIntegrated[] = {"gfx1033", "gfx1035", "gfx1036", "gfx1103",
                                            "gfx1150", "gfx1151", "gfx1152", "gfx1153"};

struct CaptureFault {
  std::string_view architecture;
  int first, end;  // versions of HIP: from the first on, before end
  std::string_view what;
};

// ROCm 7.2.1 to 7.2.4 all report HIP 7.2.53211, so the fault covers all of 7.2.
constexpr CaptureFault kCaptureFaults[] = {
    {"gfx942", hip_version(7, 2), hip_version(7, 3),
     "with ROCm 7.2 on gfx942 replays are wrong in one start of five (ROCm/clr issue 279)"},
    {"gfx950", hip_version(7, 2), hip_version(7, 3),
     "with ROCm 7.2 on gfx950 replays read bytes from before an upload (ROCm/hip issue 3902)"},
    {"gfx1201", 0, std::numeric_limits<int>::max(),
     "on gfx1201 replays of some 200 kernels read bytes from before an upload (ROCm/hip issue "
     "3887)"},
};

bool counts_pairs() {
  const char* mode = std::getenv("GPU_ENABLE_WGP_MODE");  // NOLINT(concurrency-mt-unsafe)
  return mode == nullptr || std::string_view(mode) != "0";
}

}  // namespace

gpu::MatrixUnit matrix_unit(std::string_view architecture) {
  if (std::ranges::count(kMfma, architecture) > 0) return gpu::MatrixUnit::mfma;
  if (std::ranges::count(kWmma, architecture) > 0) return gpu::MatrixUnit::wmma_w32;
  return gpu::MatrixUnit::none;
}

bool is_integrated(std::string_view architecture) {
  return std::ranges::count(kIntegrated, architecture) > 0;
}

int compute_units(std::string_view architecture, int reported) {
  // "gfx10" and later ones have four digits.
  constexpr std::string_view kFirst = "gfx1000";
  const bool pairs = architecture.size() >= kFirst.size();
  return pairs && counts_pairs() ? 2 * reported : reported;
}

std::string_view known_capture_fault(int version, std::string_view architecture) {
  for (const CaptureFault& fault : kCaptureFaults) {
    if (architecture == fault.architecture && version >= fault.first && version < fault.end) {
      return fault.what;
    }
  }
  return {};
}

}  // namespace rbee::rocm
