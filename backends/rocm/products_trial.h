#pragma once
// A library's start, tried in a process that it may end.

#include <string>

namespace rbee::rocm {

// Starts hipBLASLt on the device in a child: hipblasLtCreate() may call exit() or abort() where it
// lacks files for a card. The child is this program again, which ends before its main() then.
// Why it cannot be started here, one line; empty: it can, be it to fail with a status. Remembered
// for each device. Throws device when no child can be started.
const std::string& why_products_end_processes(int ordinal);

}  // namespace rbee::rocm
