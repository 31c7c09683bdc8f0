#pragma once
// Tries to start a library in a child process, because the start may end the process.

#include <string>

namespace rbee::rocm {

// Starts hipBLASLt on the device in a child: hipblasLtCreate() may call exit() or abort() if it
// lacks files for a card. The child runs this program again, and ends before main(). Gives why it
// cannot start here, in one line; empty if it can, even if it then fails with a status. Cached for
// each device. Throws device if no child can be started.
const std::string& why_products_end_processes(int ordinal);

}  // namespace rbee::rocm
