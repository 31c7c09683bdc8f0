#pragma once
// The vendors' libraries of collective operations: NCCL, and RCCL with the same functions. Opened
// at run time, never linked; a program works without them, but ranks on GPUs need one.

#include <initializer_list>
#include <string>

#include "backends/gpu/ccl_functions.h"
#include "backends/gpu/dynamic_library.h"

namespace rbee::gpu {

// One of the two libraries.
struct CclVendor {
  const char* name;    // e.g. "NCCL"
  const char* prefix;  // of the functions
  const char* override_variable;
  std::initializer_list<const char*> files;
};

class CclLibrary {
 public:
  // Opens the library; `vendor` outlives the object. Unless the environment says otherwise, it
  // leaves NVLink's multicast off (NCCL_NVLS_ENABLE=0): on shared machines that may put cards out
  // of service.
  explicit CclLibrary(const CclVendor& vendor);
  CclLibrary(const CclLibrary&) = delete;
  CclLibrary& operator=(const CclLibrary&) = delete;

  // Why the library cannot be used, in one line; empty if it can.
  const std::string& refusal() const { return refusal_; }
  std::string version() const;  // e.g. "NCCL 2.28.9"; empty if it cannot be used

  // What all ranks of a new communicator need to meet. Throws unsupported with refusal(), and
  // device with the library's words.
  CclUniqueId unique_id() const;
  // Throws unsupported with refusal().
  void require() const;
  // Throws device, or internal for a call with wrong values, with the library's words. comm: null
  // if there is none yet.
  void check(int status, const char* call, CclComm comm) const;

  struct Functions {
// A declarator takes no parentheses. NOLINTNEXTLINE(bugprone-macro-parentheses)
#define RB_MEMBER(name, parameters) CclResultOf<struct name>::type(*name) parameters = nullptr;
    RB_CCL_FUNCTIONS(RB_MEMBER)
#undef RB_MEMBER
  };
  // All are there if refusal() is empty.
  const Functions& functions() const { return fn_; }

 private:
  const CclVendor& vendor_;
  DynamicLibrary file_;
  Functions fn_;
  int version_ = 0;
  std::string refusal_;
};

}  // namespace rbee::gpu
