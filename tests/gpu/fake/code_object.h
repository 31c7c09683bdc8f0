#pragma once
// The facts that the fakes need about kernels, read from an AMD code object (LLVM "User Guide for
// AMDGPU Backend", code object v5): an ELF file with a MessagePack note and a descriptor symbol
// <kernel>.kd for each kernel. fat_binary.h reads NVIDIA's.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace rbee::fake {

struct KernelFacts {
  uint32_t params_bytes = 0;   // of the explicit arguments
  uint32_t params_align = 1;   // .kernarg_segment_align
  uint32_t most_threads = 0;   // .max_flat_workgroup_size
  uint32_t shared_bytes = 0;   // .group_segment_fixed_size
  uint32_t private_bytes = 0;  // .private_segment_fixed_size: scratch for spills and arrays
  uint32_t vector_registers = 0;
  uint32_t vector_spills = 0;
  uint32_t scalar_spills = 0;
  uint32_t cluster = 1;  // blocks that start together (NVIDIA)
};

struct CodeObject {
  std::string target;  // e.g. "amdgcn-amd-amdhsa--gfx942", "sm_90"; empty: no machine code
  std::map<std::string, KernelFacts> kernels;

  // If false, every kernel name is accepted.
  bool tells_kernels() const { return !target.empty(); }
};

// Reads the code object at `image`; its headers give its size. Throws std::runtime_error for
// anything else, or if it is not for `architecture`.
CodeObject read_code_object(const void* image, const std::string& architecture);

}  // namespace rbee::fake
