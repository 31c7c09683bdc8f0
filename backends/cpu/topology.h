#pragma once
// The processors that this process may run on.

#include <string>
#include <vector>

namespace rbee::cpu {

// One entry for each physical core that the affinity mask reaches: its logical processors.
std::vector<std::vector<int>> physical_cores();

// Reads lists as the kernel writes them, "0-3,8"; text that is no list gives what came before.
std::vector<int> parse_cpu_list(const std::string& text);

// "AMD EPYC 7B13", or the machine's architecture when the system does not tell.
std::string processor_name();

}  // namespace rbee::cpu
