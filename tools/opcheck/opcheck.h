#pragma once

namespace rbee::harness {

// The program; its usage stands in opcheck.cc. Returns its exit status.
int run_opcheck(int argc, const char* const* argv);

}  // namespace rbee::harness
