#pragma once

#include "backends/api/args_random.h"
#include "backends/api/impl.h"

namespace rbee::gpu {

// Every float dtype; uniform numbers equal the reference's bit by bit.
extern const Impl<RandomArgs> random;

}  // namespace rbee::gpu
