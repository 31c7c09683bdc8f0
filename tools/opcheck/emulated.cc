// opcheck as a library, for tools/emulate_amd.py: Python hosts the emulator and calls this.

#include <cstdio>

#include "tools/opcheck/opcheck.h"

// The process continues, and the caller reads the output at once.
extern "C" int rbee_opcheck(int argc, const char* const* argv) {
  const int status = rbee::harness::run_opcheck(argc, argv);
  std::fflush(stdout);
  return status;
}
