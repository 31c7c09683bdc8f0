#pragma once
// Loads a family's module at its first use and finds kernels by name. One for each device.

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/gpu/driver.h"
#include "backends/gpu/kernel_image.h"

namespace rbee::gpu {

class KernelCache {
 public:
  // `device`: its name in errors. Images must outlive the cache.
  KernelCache(Driver& driver, std::string device, std::string architecture,
              std::span<const KernelImage> images);
  ~KernelCache();
  KernelCache(const KernelCache&) = delete;
  KernelCache& operator=(const KernelCache&) = delete;

  struct Found {
    void* handle = nullptr;      // the driver's
    const char* name = nullptr;  // the kernel's, while the cache lives
    bool waits_itself = false;   // see Driver
  };
  // A kernel that may use `shared_bytes` of dynamic shared memory. The device is current. Throws
  // unsupported, listing the embedded architectures, if the family has no code for this device;
  // what Driver::load_module() throws, naming family, device and architecture; internal if the
  // family lacks the kernel; and unsupported if the driver does not take the kernel.
  Found find(std::string_view family, std::string_view kernel, size_t shared_bytes);
  // True if the family has code for this device.
  bool has_family(std::string_view family) const;

 private:
  struct Kernel {
    Found found;
    size_t shared_bytes = 0;  // allowed so far
    std::string refusal;      // why the driver does not take it; empty: it does
  };
  struct Module {
    std::vector<std::byte> bytes;  // HIP may read them while the module is there
    void* handle = nullptr;
    std::map<std::string, Kernel, std::less<>> kernels;
  };
  Module& module(std::string_view family);
  // Without a handle and a refusal if the driver's module has no such kernel.
  Kernel open(void* module, const std::string& name);

  Driver& driver_;
  std::string device_;
  std::string architecture_;
  std::span<const KernelImage> images_;
  std::mutex mutex_;
  std::map<std::string, Module, std::less<>> modules_;
};

}  // namespace rbee::gpu
