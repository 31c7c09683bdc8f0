#pragma once
// What a program says when a fault ends it.

namespace rbee::workers {

// From here on a process that SIGABRT, SIGSEGV, SIGILL or SIGFPE ends says so in one line on
// standard error, with the kernels that may be under way on its devices (rbee/core/launch_trail.h):
// AMD's runtime calls abort() at a fault of memory. Then whoever had the signal before gets it.
// `program` outlives the process.
void leave_last_words(const char* program);

}  // namespace rbee::workers
