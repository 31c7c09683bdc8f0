#include "backends/metal/core_count.h"

#include <cstdint>

#include "backends/gpu/dynamic_library.h"

namespace rbee::metal {
namespace {

constexpr const char* kOverride = "RBEE_METAL_LIBRARY";
constexpr const char* kClass = "AGXAccelerator";  // of Apple's GPUs
constexpr const char* kProperty = "gpu-core-count";
constexpr uint32_t kUtf8 = 0x08000100;  // kCFStringEncodingUTF8
constexpr long kNumberSInt64 = 4;       // kCFNumberSInt64Type
constexpr int64_t kMostCores = 1024;    // a number beyond it is none of cores

using Ref = const void*;  // an object of CoreFoundation
using Entry = uint32_t;   // of the registry; 0: none
using TypeId = unsigned long;

// Named as exported (Apple developer documentation, "IOKit" and "Core Foundation").
struct Registry {
  gpu::DynamicLibrary iokit{kOverride, {"/System/Library/Frameworks/IOKit.framework/IOKit"}};
  gpu::DynamicLibrary core{kOverride,
                           {"/System/Library/Frameworks/CoreFoundation.framework/CoreFoundation"}};
  void* (*IOServiceMatching)(const char* name) = nullptr;
  Entry (*IOServiceGetMatchingService)(uint32_t main_port, Ref matching) = nullptr;  // releases it
  Ref (*IORegistryEntryCreateCFProperty)(Entry, Ref key, Ref allocator, uint32_t) = nullptr;
  int (*IOObjectRelease)(Entry) = nullptr;
  Ref (*CFStringCreateWithCString)(Ref allocator, const char*, uint32_t encoding) = nullptr;
  TypeId (*CFGetTypeID)(Ref) = nullptr;
  TypeId (*CFNumberGetTypeID)() = nullptr;
  unsigned char (*CFNumberGetValue)(Ref, long type, void*) = nullptr;
  void (*CFRelease)(Ref) = nullptr;

  // False if something is missing.
  bool open() {
    if (!iokit || !core) return false;
#define RB_BIND(library, name) library.bind(name, #name)
    RB_BIND(iokit, IOServiceMatching);
    RB_BIND(iokit, IOServiceGetMatchingService);
    RB_BIND(iokit, IORegistryEntryCreateCFProperty);
    RB_BIND(iokit, IOObjectRelease);
    RB_BIND(core, CFStringCreateWithCString);
    RB_BIND(core, CFGetTypeID);
    RB_BIND(core, CFNumberGetTypeID);
    RB_BIND(core, CFNumberGetValue);
    RB_BIND(core, CFRelease);
#undef RB_BIND
    return iokit.missing().empty() && core.missing().empty();
  }

  int64_t number_of(Entry entry, const char* property) const {
    Ref key = CFStringCreateWithCString(nullptr, property, kUtf8);
    if (key == nullptr) return 0;
    Ref value = IORegistryEntryCreateCFProperty(entry, key, nullptr, 0);
    CFRelease(key);
    if (value == nullptr) return 0;
    int64_t out = 0;
    const bool number = CFGetTypeID(value) == CFNumberGetTypeID() &&
                        CFNumberGetValue(value, kNumberSInt64, &out) != 0;
    CFRelease(value);
    return number ? out : 0;
  }
};

}  // namespace

int core_count() {
  Registry registry;
  if (!registry.open()) return 0;
  const Entry gpu = registry.IOServiceGetMatchingService(0, registry.IOServiceMatching(kClass));
  if (gpu == 0) return 0;
  const int64_t count = registry.number_of(gpu, kProperty);
  registry.IOObjectRelease(gpu);
  return count > 0 && count <= kMostCores ? static_cast<int>(count) : 0;
}

}  // namespace rbee::metal
