#pragma once
// Compiles Metal text for this processor, by clang and the shim metal_stdlib.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "tests/gpu/fake/fibers.h"

namespace rbee::fake {

struct TextKernel {
  KernelFunction function = nullptr;
  uint32_t most_threads = 1024;  // as RB_ENTRY says
};

struct MetalText {
  std::map<std::string, TextKernel> kernels;
  const std::string* source = nullptr;
  unsigned char* group_memory = nullptr;
  size_t group_bytes = 0;
  std::string error;  // of the compiler; empty: none
};

// A text that was compiled before costs nothing; RBEE_FAKE_METAL_CACHE names a folder that keeps
// them for other processes. The result lives until the program ends.
const MetalText& compile_metal(const std::string& source);

}  // namespace rbee::fake
