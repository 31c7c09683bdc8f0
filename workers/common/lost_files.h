#pragma once
// How a program ends whose mapped file can no longer be read.

namespace rbee::workers {

// From here on such a file ends the process with one line on standard error, which names it, and
// with this exit status. `program` outlives the process. See rbee/io/lost_pages.h.
void end_on_lost_files(const char* program, int status);

}  // namespace rbee::workers
