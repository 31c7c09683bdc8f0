#pragma once
// A device's peak rates, as measured on it.

#include <string_view>

#include "backends/api/device.h"

namespace rbee::tools {

// The fastest arithmetic unit for a weight type's products.
struct Unit {
  double operations_per_second;
  const char* name;
};

struct HardwareLimits {
  double bytes_per_second = 0;          // CPU: large reads; GPU: a large copy, read plus written
  double weights_bytes_per_second = 0;  // the same for data of the weights' size
  double f32_flops = 0;
  double bf16_flops = 0;  // 0: no such unit
  double int8_ops = 0;    // 0: no such unit, or not measured
  bool gpu = false;

  // `type`: of the weights, e.g. "q4_1".
  Unit unit_for(std::string_view type) const;
};

// Bytes per second from page-locked memory to the device; takes about a second.
double measure_bus(Device& device);

// Takes some seconds. threads: for a CPU, 0 = one for each core. weight_bytes: bytes read for one
// token.
HardwareLimits measure_limits(Device& device, int threads, double weight_bytes);

}  // namespace rbee::tools
