#pragma once
// The kernels of what nvcc embeds: a file of machine code (ELF) and PTX for several compute
// capabilities, each compressed by zstd. NVIDIA describes it nowhere; what cuobjdump prints of the
// same files is what is read here.

#include "tests/gpu/fake/code_object.h"

namespace rbee::fake {

// Ten times the major number and the minor one: of "sm_75", or a Hopper's.
int capability_of(const std::string& architecture);

// Of the machine code that a device of `architecture` runs; where there is none, other code stands
// in, so that one build tests the host side of every device. PTX alone: nothing is known. Throws
// std::runtime_error for what is no such file.
CodeObject read_fat_binary(const void* image, const std::string& architecture);

}  // namespace rbee::fake
