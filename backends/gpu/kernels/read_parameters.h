#pragma once
// A launch leaves a kernel's parameters in memory: asked for before it waits for the kernel in
// front, they are there behind the wait.

#include "backends/gpu/portable.h"

namespace rbee {
namespace gpu {

template <class Params>
RB_DEVICE void read_parameters([[maybe_unused]] const Params& params) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  constexpr unsigned kLine = 64;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&params);
#pragma unroll
  for (unsigned at = 0; at < sizeof(Params); at += kLine) {
    asm volatile("" ::"r"(*reinterpret_cast<const unsigned*>(bytes + at)));
  }
#endif
}

}  // namespace gpu
}  // namespace rbee
