#pragma once
// Matrix products by the vendors' libraries with cuBLASLt's interface: cuBLASLt itself (cuBLAS
// documentation, "Using the cuBLASLt API") and hipBLASLt (its API reference). Opened at run time,
// never linked; a program works without them.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/api/device.h"
#include "backends/gpu/dynamic_library.h"
#include "backends/gpu/lt_numbers.h"
#include "rbee/core/dtype.h"
#include "rbee/core/error.h"

namespace rbee::gpu {

class GpuDevice;

// One of the two libraries.
struct LtVendor {
  const char* name;    // e.g. "cuBLASLt"
  const char* prefix;  // of the functions
  const char* override_variable;
  std::initializer_list<const char*> files;
  const LtNumbers& numbers;
  const char* asked_by = nullptr;  // a variable that must be 1 to use the library; null: none
  // Why it must not be started on a device in this process; empty if it may be. Null: it always
  // may.
  const std::string& (*why_not)(int ordinal) = nullptr;
};

// d(m, n) = op(a) * op(b) + bias(m) + added(m, n): column-major, as these libraries count.
struct LtProduct {
  const char* op;  // as errors name it
  DType type;      // of a and b
  DType result;    // of d and bias
  bool transpose_a = false, transpose_b = false;
  int64_t m = 0, n = 0, k = 0;
  int64_t a_pitch = 0, b_pitch = 0, d_pitch = 0;     // elements between columns
  int64_t batch = 1;                                 // matrices
  int64_t a_stride = 0, b_stride = 0, d_stride = 0;  // elements between them
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;   // null: none
  const void* added = nullptr;  // as d lies and of its type; null: none
  void* d = nullptr;
};

class LtLibrary {
 public:
  // Opens the library; `vendor` outlives the object.
  explicit LtLibrary(const LtVendor& vendor);
  LtLibrary(const LtLibrary&) = delete;
  LtLibrary& operator=(const LtLibrary&) = delete;

  // Why the library cannot be used, in one line; null if it can.
  const char* refusal() const { return refusal_.empty() ? nullptr : refusal_.c_str(); }

  // Why it cannot multiply this on the stream's device, in one line; null if it can. The answer is
  // cached. Throws out_of_memory, or, if a call fails, device or internal, naming the operation,
  // the device and the call.
  const char* refusal(const LtProduct& product, Stream& stream);
  // Queues the product; legal during capture. False if refusal() gives a reason, or the library has
  // no kernel after all. Throws as refusal() does.
  bool run(const LtProduct& product, Stream& stream);

 private:
  using Owned = std::unique_ptr<LtOpaque, int (*)(LtHandle)>;
  // The library on one device.
  struct OnDevice {
    Owned library;
    std::string refusal;  // empty: there is one
  };
  // The heuristic's question, and its answer with the descriptors to use it.
  using Key = std::vector<int64_t>;
  struct Plan {
    Owned operation{nullptr, nullptr};
    Owned a{nullptr, nullptr}, b{nullptr, nullptr}, d{nullptr, nullptr};
    std::vector<std::byte> algorithm;  // empty: there is none
    size_t workspace = 0;              // bytes
  };
  struct Functions {
// A declarator takes no parentheses. NOLINTNEXTLINE(bugprone-macro-parentheses)
#define RB_MEMBER(name, parameters) int(*name) parameters = nullptr;
    RB_LT_FUNCTIONS(RB_MEMBER)
#undef RB_MEMBER
  };

  Code code_of(int status) const;
  void check(int status, const char* call) const;
  // Null: not started yet, and it cannot start during capture.
  const OnDevice* on_device(const GpuDevice& device);
  OnDevice start(DeviceId id) const;
  Plan& plan_of(const LtProduct& product, const OnDevice& device, int ordinal);
  Key key_of(const LtProduct& product, int ordinal) const;
  Plan make_plan(const LtProduct& product, LtHandle library) const;
  void find_algorithm(const LtProduct& product, LtHandle library, Plan& plan) const;
  // False, and the plan has no algorithm any more, when the library does not support it.
  bool multiply(const LtProduct& product, LtHandle library, Plan& plan, Stream& stream) const;
  Owned make_operation(const LtProduct& product) const;
  Owned make_layout(DType type, int64_t rows, int64_t columns, int64_t pitch, int64_t batch,
                    int64_t stride) const;
  Owned make_preference(const LtProduct& product) const;

  const LtVendor& vendor_;
  const LtNumbers& numbers_;
  DynamicLibrary file_;
  Functions fn_;
  std::string refusal_;
  std::mutex mutex_;  // guards everything below, and the descriptors while they are used
  std::map<int, OnDevice> on_devices_;  // by ordinal
  std::map<Key, Plan> plans_;
  std::string no_algorithm_, not_started_;
};

}  // namespace rbee::gpu
