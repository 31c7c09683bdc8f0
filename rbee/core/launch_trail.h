#pragma once
// The kernels that were launched last and may still run. A crash report prints them, because a
// driver may end the process in the middle of a kernel without an error to catch.

#include <cstddef>

namespace rbee {

// A kernel was queued. `op` and `kernel` must stay valid until forget_launches().
void note_launch(const char* op, const char* kernel, const void* stream) noexcept;
// All kernels queued on the stream have ended.
void note_end(const void* stream) noexcept;
// Call this before names of kernels are freed.
void forget_launches() noexcept;

// Writes "OP KERNEL, OP KERNEL" for the kernels that may still run, the latest first, and returns
// the number of bytes, 0 if there are none. If more kernels run than the trail holds, it forgets
// the oldest. Safe in a signal handler.
size_t describe_launches(char* to, size_t room) noexcept;

}  // namespace rbee
