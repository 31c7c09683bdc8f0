// rbee: the command line. Exit status: 0 done, 1 an error, 2 wrong usage, 3 a part of a
// mapped file was lost.

#include "cli/commands.h"

#include <cstdio>

int main(int argc, char** argv) {
  const int status = rbee::tools::run_command_line(argc, argv);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  std::fprintf(stderr, "rbee: standard output could not be written\n");
  return status == 0 ? 1 : status;
}
