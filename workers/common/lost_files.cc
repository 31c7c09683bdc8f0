#include "workers/common/lost_files.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "rbee/io/lost_pages.h"

namespace rbee::workers {
namespace {

const char* program_name = "";
int exit_status = 0;

// Runs in a signal handler, so it calls only write() and _exit() of the system.
void end_process(const char* file) {
  static std::array<char, 8192> line;
  size_t used = 0;
  for (const char* part :
       {program_name, ": ", file,
        ": cannot be read any more: it was cut while it was in use, or its disk fails\n"}) {
    const size_t taken = std::min(std::strlen(part), line.size() - used);
    std::memcpy(line.data() + used, part, taken);
    used += taken;
  }
  // If standard error takes less, the failure cannot be reported.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), used);
  ::_exit(exit_status);
}

}  // namespace

void end_on_lost_files(const char* program, int status) {
  program_name = program;
  exit_status = status;
  io::handle_lost_pages(end_process);
}

}  // namespace rbee::workers
