// rbee: a worker, if the command line names one; else the command line's commands. Their exit
// status: 0 done, 1 an error, 2 wrong usage, 3 a part of a mapped file was lost.

#include <cstdio>

#include "cli/commands.h"
#include "workers/programs/programs.h"

int main(int argc, char** argv) {
  if (const auto status = rbee::workers::run_named_worker(argc, argv)) return *status;
  const int status = rbee::tools::run_command_line(argc, argv);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  std::fprintf(stderr, "rbee: standard output could not be written\n");
  return status == 0 ? 1 : status;
}
