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

KernelCache::Kernel KernelCache::open(void* module, const std::string& name) {
  Kernel out;
  try {
    out.found.handle = driver_.find_kernel(module, name.c_str());
    if (out.found.handle != nullptr)
      out.found.waits_itself = driver_.waits_itself(out.found.handle);
  } catch (const Error& error) {
    // A compiler that refuses a text (Metal) is asked once, not at every launch.
    if (error.code() != Code::unsupported) throw;
    out.refusal = error.what();
  }
  return out;
}

KernelCache::Found KernelCache::find(std::string_view family, std::string_view kernel,
                                     size_t shared_bytes) {
  const std::scoped_lock lock(mutex_);
  Module& from = module(family);
  auto known = from.kernels.find(kernel);
  if (known == from.kernels.end()) {
    Kernel opened = open(from.handle, std::string(kernel));
    if (opened.found.handle == nullptr && opened.refusal.empty()) {
      fail(Code::internal, family, "there is no kernel ", kernel);
    }
    known = from.kernels.emplace(std::string(kernel), std::move(opened)).first;
    known->second.found.name = known->first.c_str();
  }
  Kernel& entry = known->second;
  if (!entry.refusal.empty()) throw Error(Code::unsupported, family, entry.refusal);
  // 48 KiB need no request, but the kernel's own declarations count, too.
  if (shared_bytes > entry.shared_bytes) {
    driver_.allow_shared(entry.found.handle, shared_bytes);
    entry.shared_bytes = shared_bytes;
  }
  return entry.found;
}

}  // namespace rbee::gpu
