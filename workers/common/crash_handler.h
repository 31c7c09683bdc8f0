#pragma once
// Reports a fault that ends a program.

namespace rbee::workers {

// From now on, SIGABRT, SIGSEGV, SIGILL and SIGFPE print one line on standard error, with the
// kernels that may be running on the process's devices (rbee/core/launch_trail.h): AMD's runtime
// calls abort() at a memory fault. Then the signal's previous handler runs. `program` must outlive
// the process.
void install_crash_handler(const char* program);

}  // namespace rbee::workers
