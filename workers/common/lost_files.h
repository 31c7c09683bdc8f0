#pragma once
// Ends a program whose mapped file can no longer be read.

namespace rbee::workers {

// From now on, such a file ends the process with one line on standard error, which names the file,
// and with this exit status. `program` must outlive the process. See rbee/io/lost_pages.h.
void end_on_lost_files(const char* program, int status);

}  // namespace rbee::workers
