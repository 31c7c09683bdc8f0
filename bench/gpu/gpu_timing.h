#pragma once
// Timing of launches on the first GPU, and what is measured beside them.

#include <functional>

#include "backends/api/device.h"

namespace rbee::bench {

// Throws not_found when there is no GPU.
Device& first_gpu();

// Seconds of one call of `launch(i)`: the median over replays of a recorded graph of 20 calls, i
// from 0 on, so that no time of the host counts.
double time_launches(Device& device, double seconds, const std::function<void(int)>& launch);

// Bytes read and written in a second by a large copy within the device.
double copy_bandwidth(Device& device, double seconds);

}  // namespace rbee::bench
