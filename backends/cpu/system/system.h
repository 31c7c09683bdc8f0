#pragma once
// Memory and processors, as the system has them. One file for each system: linux.cc, macos.cc.
// Internal to backends/cpu.

#include <cstddef>
#include <string>
#include <vector>

#include "backends/api/device.h"

namespace rbee::cpu {

MemoryInfo machine_memory();

// The logical processors that this process may run on; at least one. With macOS, which lets a
// process choose none: those of the fastest kind.
std::vector<int> allowed_processors();
// The logical processors of the physical core that `processor` belongs to, itself among them.
std::vector<int> core_of(int processor);
// Of the calling thread. A refusal (a container's rule; macOS) only costs speed.
void pin_to(const std::vector<int>& processors);

// Empty if the system does not tell.
std::string system_processor_name();

// Of whole pages.
void prefer_huge_pages(void* data, size_t bytes);  // a refusal only costs speed
void give_back_pages(void* data, size_t bytes);    // their content is lost

}  // namespace rbee::cpu
