#pragma once
// The kernels that devices got last and that may be under way, for the last words of a process: a
// driver may end it in the middle of one, without an error that anybody could catch.

#include <cstddef>

namespace rbee {

// A kernel was queued. `op` and `kernel` stay where they are until forget_launches().
void note_launch(const char* op, const char* kernel, const void* stream) noexcept;
// What was queued on the stream has ended.
void note_end(const void* stream) noexcept;
// Names of kernels go away.
void forget_launches() noexcept;

// Writes "OP KERNEL, OP KERNEL" of those that may be under way, the latest first, and returns the
// bytes; 0: there are none. Of some more than the trail has, the first are lost. Safe in a signal
// handler.
size_t describe_launches(char* to, size_t room) noexcept;

}  // namespace rbee
