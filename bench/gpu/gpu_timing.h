#pragma once
// Timing of launches on the first GPU, and what is measured beside them.

#include <functional>

#include "rbee/tensor/tensor.h"

namespace rbee::bench {

// Throws not_found when there is no GPU.
Device& first_gpu();

// A tensor of bytes 0x2c: small finite numbers in every type.
Tensor filled(const Shape& shape, DType dtype, Device& device);

// main() of a program whose only option is --seconds S, how long each thing is timed. Gives the
// exit status: 1 with a line that says why when `run` throws, 2 for other arguments.
int run_bench(int argc, char** argv, double seconds, const std::function<void(double)>& run);

// Seconds of one call of `launch(i)`: the median over replays of a captured graph of 20 calls, i
// from 0 on, so that no time of the host counts.
double time_launches(Device& device, double seconds, const std::function<void(int)>& launch);

// Bytes read and written in a second by a large copy within the device.
double copy_bandwidth(Device& device, double seconds);

}  // namespace rbee::bench
