#include "backends/api/registry.h"

#include <vector>

#include "rbee/core/error.h"

namespace rbee {
namespace {

std::vector<BackendInfo>& registered() {
  static std::vector<BackendInfo> list;
  return list;
}

}  // namespace

void register_backend(const BackendInfo& backend) {
  for (BackendInfo& known : registered()) {
    if (known.kind == backend.kind) {
      known = backend;
      return;
    }
  }
  registered().push_back(backend);
}

std::span<const BackendInfo> backends() {
  return registered();
}

Device& get_device(DeviceId id) {
  std::string kinds;
  for (const BackendInfo& backend : registered()) {
    if (backend.kind == id.kind) return backend.device(id.ordinal);
    kinds += cat(kinds.empty() ? "" : ", ", name(backend.kind));
  }
  fail(Code::not_found, "device", id, " is not in this program, which has: ", kinds);
}

}  // namespace rbee
