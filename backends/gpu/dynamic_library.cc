#include "backends/gpu/dynamic_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

#include "rbee/core/cat.h"

namespace rbee::gpu {

DynamicLibrary::DynamicLibrary(const char* override_variable,
                               std::initializer_list<const char*> names) {
  const auto open = [this](const char* name) {
    handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      name_ = name;
      reason_.clear();
      return true;
    }
    const char* error = dlerror();
    const std::string_view why = error != nullptr ? error : name;
    // The fault is not in the name: the file is there, and a part of it is missing or wrong.
    if (reason_.empty() || !why.starts_with(name)) reason_ = why;
    return false;
  };
  const char* chosen = std::getenv(override_variable);
  if (chosen != nullptr && *chosen != '\0') {
    open(chosen);
    return;
  }
  for (const char* name : names) {
    if (open(name)) return;
  }
}

DynamicLibrary::~DynamicLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

void* DynamicLibrary::find(const char* symbol) const {
  return handle_ != nullptr ? dlsym(handle_, symbol) : nullptr;
}

void DynamicLibrary::add_missing(const char* symbol) {
  missing_ += cat(missing_.empty() ? "" : ", ", symbol);
}

}  // namespace rbee::gpu
