// rbee: the command line. Exit status: 0 done, 1 an error, 2 wrong usage, 3 a part of a
// mapped file was lost.

#include "cli/commands.h"

int main(int argc, char** argv) {
  return rbee::tools::run_command_line(argc, argv);
}
