#pragma once
// How tests steer the fake of NCCL or RCCL that they opened.

#include <cstdint>

extern "C" {
void rbee_fake_ccl_reset();  // counts, mistakes and faults
// The `nth` call from now on (1 = the next) of this exported name returns `status`.
void rbee_fake_ccl_fail(const char* call, int nth, int status);
// Of all communicators, until it is 0 again: what ncclCommGetAsyncError tells.
void rbee_fake_ccl_fault(int status);
int64_t rbee_fake_ccl_calls(const char* name);
// Communicators that have not been given back.
int rbee_fake_ccl_live();
const char* rbee_fake_ccl_mistake();  // the first; empty: none
}
