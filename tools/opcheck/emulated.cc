// opcheck as a library, for tools/emulate_amd.py: Python hosts the emulator and calls this.

#include "tools/opcheck/opcheck.h"

extern "C" int rbee_opcheck(int argc, const char* const* argv) {
  return rbee::harness::run_opcheck(argc, argv);
}
