#pragma once
// The processors that this process may run on.

#include <string>
#include <vector>

namespace rbee::cpu {

// For each physical core in the affinity mask, its logical processors in the mask.
std::vector<std::vector<int>> physical_cores();

// Reads the kernel's lists, "0-3,8"; if the text stops being a list, gives the part before.
std::vector<int> parse_cpu_list(const std::string& text);

// "AMD EPYC 7B13", or the machine's architecture if the system does not tell.
std::string processor_name();

}  // namespace rbee::cpu
