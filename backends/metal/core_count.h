#pragma once
// How many cores the GPU has, which Metal does not tell.

namespace rbee::metal {

// Asks the registry of devices (IOKit and CoreFoundation, opened at run time); nothing else about
// the machine is read. 0 if it does not say.
int core_count();

}  // namespace rbee::metal
