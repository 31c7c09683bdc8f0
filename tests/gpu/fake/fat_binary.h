#pragma once
// The kernels in nvcc's embedded file: machine code (ELF) and PTX for several compute capabilities,
// each compressed by zstd. NVIDIA does not document the format; this reader follows the output of
// cuobjdump for the same files.

#include "tests/gpu/fake/code_object.h"

namespace rbee::fake {

// 10 * major + minor, for example of "sm_75"; for a name of no such form, a Hopper's.
int capability_of(const std::string& architecture);

// The machine code for a device of `architecture`. If there is none, other code is used, so that
// one build tests the host side of every device. From PTX alone nothing is known. Throws
// std::runtime_error for other files.
CodeObject read_fat_binary(const void* image, const std::string& architecture);

}  // namespace rbee::fake
