#include "backends/gpu/kernel_cache.h"

#include "rbee/core/error.h"
#include "rbee/core/launch_trail.h"

namespace rbee::gpu {

KernelCache::KernelCache(Driver& driver, std::string device, std::string architecture,
                         std::span<const KernelImage> images)
    : driver_(driver),
      device_(std::move(device)),
      architecture_(std::move(architecture)),
      images_(images) {}

KernelCache::~KernelCache() {
  forget_launches();
  for (auto& [family, module] : modules_) driver_.unload_module(module.handle);
}

bool KernelCache::has_family(std::string_view family) const {
  return find_image(images_, family, architecture_) != nullptr;
}

KernelCache::Module& KernelCache::module(std::string_view family) {
  const auto known = modules_.find(family);
  if (known != modules_.end()) return known->second;
  const KernelImage* image = find_image(images_, family, architecture_);
  if (image == nullptr) {
    const std::string list = embedded_architectures(images_, family);
    fail(Code::unsupported, family, "this program has no kernels for ", architecture_, " (",
         device_, "); it has them for ", list.empty() ? "no device" : list);
  }
  try {
    Module opened{.bytes = open_image(*image), .handle = nullptr, .kernels = {}};
    opened.handle = driver_.load_module(opened.bytes);
    return modules_.emplace(std::string(family), std::move(opened)).first->second;
  } catch (const Error& error) {
    fail(error.code(), family, "the kernels cannot be loaded on ", device_, " (", architecture_,
         "): ", error.what());
  }
}

KernelCache::Found KernelCache::find(std::string_view family, std::string_view kernel,
                                     size_t shared_bytes) {
  const std::scoped_lock lock(mutex_);
  Module& from = module(family);
  auto known = from.kernels.find(kernel);
  if (known == from.kernels.end()) {
    const std::string name(kernel);
    void* handle = driver_.find_kernel(from.handle, name.c_str());
    if (handle == nullptr) fail(Code::internal, family, "there is no kernel ", kernel);
    const bool waits = driver_.waits_itself(handle);
    known = from.kernels.emplace(name, Kernel{}).first;
    known->second.found = {.handle = handle, .name = known->first.c_str(), .waits_itself = waits};
  }
  Kernel& entry = known->second;
  // 48 KiB need no request, but the kernel's own declarations count, too.
  if (shared_bytes > entry.shared_bytes) {
    driver_.allow_shared(entry.found.handle, shared_bytes);
    entry.shared_bytes = shared_bytes;
  }
  return entry.found;
}

}  // namespace rbee::gpu
