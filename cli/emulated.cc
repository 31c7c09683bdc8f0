// rbee as a library, for tools/emulate_amd.py: Python hosts the emulator and calls this.

#include "cli/commands.h"

extern "C" int rbee_command_line(int argc, char** argv) {
  return rbee::tools::run_command_line(argc, argv);
}
